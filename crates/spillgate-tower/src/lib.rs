#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod body;
mod future;
mod latency;
mod layer;
mod peer;
mod permits;
mod service;

pub use spillgate_enforce::{
    Enforcer, GrpcStatus, Headers, Metrics, MetricsFormat, OnStoreError, ProblemJson, Reason,
    Refusal, Refuse,
};

pub use self::body::ResponseBody;
pub use self::future::ResponseFuture;
pub use self::latency::ServiceLatency;
pub use self::layer::SpillgateLayer;
pub use self::peer::PeerAddr;
pub use self::permits::HeldPermits;
pub use self::service::Spillgate;
