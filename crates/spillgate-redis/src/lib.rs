#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

/// Builder methods that set one field each.
macro_rules! setters {
    ($builder:ident {
        $($(#[$attribute:meta])* $name:ident($value:ident: $type:ty): $($field:ident).+ = $to:expr;)+
    }) => {
        impl $builder {
            $(
                $(#[$attribute])*
                pub fn $name(mut self, $value: $type) -> Self {
                    self.$($field).+ = $to;
                    self
                }
            )+
        }
    };
}

pub mod backend;
pub mod client;
mod clock_sample;
mod effective_quota;
mod fingerprint;
mod flow;
mod hold;
mod lease;
mod name;
mod pending_call;
pub mod script;
mod seal;
mod state;
mod stats;
mod store;
mod to_the_end;

pub use self::fingerprint::Fingerprint;
pub use self::flow::inherit_client;
pub use self::name::{Name, Secret};
pub use self::state::{Past, State, Terms};
pub use self::stats::{LeaseStats, PermitStats, Stats};
pub use self::store::{Agreement, RedisLimits, RedisStore, Settings};
