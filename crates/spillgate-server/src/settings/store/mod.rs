//! Where servers share what is spent: the table `[store]`, and the flags that begin with
//! `--store`.

mod given;
mod settings;
mod value;

pub(super) use self::given::GivenStore;
pub(crate) use self::settings::StoreSettings;
