//! What a reverse proxy stands in front of: the table `[proxy]`, and the flags of
//! `spillgate proxy`.

mod given;
mod settings;
mod value;

pub(crate) use self::given::GivenProxy;
pub(crate) use self::settings::ProxySettings;
pub(crate) use self::value::{Host, Scheme, UpstreamUrl};
