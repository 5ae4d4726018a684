#![doc = include_str!("../README.md")]

mod address;
mod caller;
mod client_ip;
mod descriptor;
mod error;
mod file;
mod gate;
mod identity;
mod key;
mod lists;
mod policy;
mod request_view;
mod route;
mod spec;
pub mod store;
mod suggest;

pub use spillgate::{AlgorithmKind, Quota};

pub use self::caller::Caller;
pub use self::descriptor::Descriptor;
pub use self::error::{Error, Place, Problem};
#[cfg(feature = "schema")]
pub use self::file::schema;
pub use self::file::{PolicyFile, Settings, Tables};
pub use self::gate::{
    Answer, Changes, Decided, DescriptorKind, DescriptorOutcome, DescriptorState, Descriptors,
    Explanation, Gate, LimitChange, LimitCheck, LimitExplanation, LimitState, LimitSummary, Limits,
    ListChange, Outcome, Question, Receipt, SavedState, StateExplanation, Subject, Throttle,
    Uncharged,
};
pub use self::key::Key;
pub use self::lists::ListKind;
pub use self::policy::{Policy, PolicyBuilder};
pub use self::request_view::RequestView;
pub use self::route::{EncodedSlash, IgnoreCase, PathSpelling};
pub use self::spec::{
    Accept, Acceptor, Domain, HeaderIdentity, Identity, Limit, Match, Metadata, MetadataValue,
    Mode, Node, NodeLimit, NodeMode, NodeQuota, Override, Settle, Tier,
};
