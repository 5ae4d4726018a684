#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

/// Implements `Debug` with these fields alone: others are long, or may be secrets.
macro_rules! debug_fields {
    (
        $self:ident: $name:ident $(<$($lifetime:lifetime),+>)?
        { $($field:ident: $value:expr),* $(,)? }
    ) => {
        impl std::fmt::Debug for $name $(<$($lifetime),+>)? {
            fn fmt(&$self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}

mod caller;
mod config;
mod duration;
mod envoy;
mod error;
mod gate;
mod key;
mod policy;
mod printable;
mod request_view;
pub mod rfc3339;
pub mod store;
mod suggest;

pub use spillgate::{AlgorithmKind, Quota};

pub use self::caller::Caller;
pub use self::config::PolicyBuilder;
#[cfg(feature = "schema")]
pub use self::config::file::schema;
pub use self::config::file::{PolicyFile, Settings, Tables};
pub use self::config::spec::{
    Accept, Acceptor, Adaptive, AdaptiveBounds, BanSpec, Domain, HeaderIdentity, Identity, Limit,
    Match, Metadata, MetadataValue, Mode, Node, NodeLimit, NodeMode, NodeQuota, Override,
    Priorities, PriorityRule, Settle, Tier,
};
pub use self::duration::parse_duration;
pub use self::envoy::Descriptor;
pub use self::error::{Error, Place, Problem};
pub use self::gate::{
    Acquired, AdaptiveExplanation, AdaptiveState, AffectedLimit, Answer, Ban, BanExplanation,
    BanUsage, CallReport, Changes, CountedKey, Decided, DescriptorExplanation, DescriptorKind,
    DescriptorLimitExplanation, DescriptorOutcome, DescriptorState, Descriptors,
    DescriptorsExplanation, Effect, EntryChange, EntryChangeKind, Explanation, Gate, LimitChange,
    LimitCheck, LimitExplanation, LimitState, LimitSummary, Limits, ListChange, ListEntry, Origin,
    Outcome, OverrideEntry, PolicyChange, PriorityExplanation, Question, Receipt, RequestPermits,
    SavedState, SettledResponse, StartedBans, StateExplanation, Subject, Throttle, Uncharged,
};
pub use self::key::Key;
pub use self::policy::Policy;
pub use self::policy::lists::ListKind;
pub use self::policy::route::{EncodedSlash, IgnoreCase, PathSpelling};
pub use self::policy::terms::Terms;
pub use self::printable::{is_printable, printable};
pub use self::request_view::RequestView;
