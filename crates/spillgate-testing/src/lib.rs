//! Test support: a reference model and a conformance suite.
//!
//! The [`reference`](mod@reference) model decides by exact rational arithmetic over plain
//! state, slowly and as plainly as possible. The [`conformance`] suite compares anything that
//! decides, a [`Subject`], with recorded answers and with the model, call by call and field by
//! field.
//!
//! ```
//! use spillgate::AlgorithmKind;
//! use spillgate_testing::{Limit, conformance, reference::reference};
//!
//! // The model conforms to itself.
//! let model = |limit: &Limit| reference(limit).unwrap();
//! conformance::recorded(AlgorithmKind::TokenBucket, model);
//! conformance::histories(AlgorithmKind::TokenBucket, 10, model);
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::panic, reason = "a suite reports failures by panicking")]

pub mod certificates;
#[cfg(feature = "gate")]
mod check_limit;
pub mod conformance;
mod effort;
mod exact;
#[cfg(feature = "gate")]
mod in_gate;
mod limit;
pub mod moving;
mod port;
mod program;
pub mod reference;
pub mod strategy;
mod subject;

#[cfg(feature = "gate")]
pub use self::check_limit::CheckLimit;
pub use self::effort::{effort, seeds};
#[cfg(feature = "gate")]
pub use self::in_gate::InGate;
pub use self::limit::Limit;
pub use self::port::Port;
pub use self::program::{needs, program};
pub use self::reference::Reference;
pub use self::subject::{Observed, Subject};

/// The repository's README, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
