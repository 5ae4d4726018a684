#![doc = include_str!("../README.md")]

mod address;
mod caller;
mod client_ip;
mod error;
mod file;
mod gate;
mod identity;
mod key;
mod lists;
mod policy;
mod request;
mod route;
mod spec;
pub mod store;
mod suggest;

pub use tollgate::{AlgorithmKind, Quota};

pub use self::caller::Caller;
pub use self::error::{Error, Place, Problem};
#[cfg(feature = "schema")]
pub use self::file::schema;
pub use self::file::{PolicyFile, Settings, Tables};
pub use self::gate::{
    Answer, Changes, Explanation, Gate, LimitCheck, LimitExplanation, LimitState, LimitSummary,
    Passage, Receipt, SavedState, StateExplanation,
};
pub use self::key::Key;
pub use self::lists::ListKind;
pub use self::policy::{Policy, PolicyBuilder};
pub use self::request::Request;
pub use self::spec::{
    Accept, Acceptor, HeaderIdentity, Identity, Limit, Match, Mode, Override, Settle, Tier,
};
