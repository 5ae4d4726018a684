//! What a server is told: by flags, else by environment variables, else by the tables
//! `[server]`, `[store]` and `[proxy]` of its file, else by defaults.

mod error;
mod file;
mod given;
mod load;
mod proxy;
mod range;
mod settings;
mod store;
mod value;

pub(crate) use self::error::ConfigError;
pub(crate) use self::given::Given;
pub(crate) use self::load::{Additions, Config, Source, read_file, read_small};
pub(crate) use self::proxy::{GivenProxy, ProxySettings};
pub(crate) use self::settings::{Settings, TlsFiles};
pub(crate) use self::store::StoreSettings;
pub(crate) use self::value::{LimitQuota, Listen, LogFormat, Token};
