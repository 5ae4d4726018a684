#![doc = include_str!("../README.md")]

mod descriptors;
mod future;
mod headers;
mod layer;
mod log;
mod metrics;
mod peer;
mod per_limit;
mod refusal;
mod round;
mod service;
mod settings;
mod verdict;

pub use self::future::ResponseFuture;
pub use self::headers::Headers;
pub use self::layer::SpillgateLayer;
pub use self::metrics::{Metrics, MetricsFormat};
pub use self::peer::PeerAddr;
pub use self::refusal::{GrpcStatus, ProblemJson, Reason, Refusal, Refuse};
pub use self::service::Spillgate;
pub use self::settings::OnStoreError;
