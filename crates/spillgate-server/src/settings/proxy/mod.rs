//! What a reverse proxy stands in front of: the table `[proxy]`, and the flags of
//! `spillgate proxy`.

mod given;
mod settings;

pub(crate) use self::given::GivenProxy;
pub(crate) use self::settings::ProxySettings;
