#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod adaptive;
mod adaptive_log;
mod admission;
mod bans;
mod delay;
mod denial_log;
mod enforcer;
mod follow;
mod headers;
mod metrics;
mod per_limit;
mod permits;
mod refusal;
mod settle;

pub use self::admission::Admission;
pub use self::delay::Delayed;
pub use self::enforcer::{Enforcer, OnStoreError};
pub use self::headers::{Headers, RateLimitHeaders};
pub use self::metrics::{
    LatencyHistogram, LimitCallers, LimitCounts, Metrics, MetricsFormat, OtherCounts, TopCallers,
};
pub use self::refusal::{GrpcStatus, ProblemJson, Reason, Refusal, Refuse};
