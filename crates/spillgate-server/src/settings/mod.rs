//! Settings of the server: flags, environment variables, and the tables `[server]`, `[store]` and
//! `[proxy]` of the file. Precedence: flag, environment variable, file, default.
//!
//! A new setting is one entry of `server.rs`, `store.rs` or `proxy.rs`.

mod args;
mod declare;
mod load;
mod proxy;
mod schema;
mod server;
mod store;
mod types;
mod value;

pub(crate) use self::args::Flags;
pub(crate) use self::declare::SettingChange;
pub(crate) use self::load::{Additions, Config, Source, fingerprint};
pub(crate) use self::proxy::ProxySettings;
pub(crate) use self::schema::schema;
pub(crate) use self::server::{Settings, TlsFiles};
pub(crate) use self::store::StoreSettings;
pub(crate) use self::types::{LimitQuota, Listen, LogFormat, Token};
