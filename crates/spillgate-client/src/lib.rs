#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod builder;
mod error;
mod exchange;
mod headers;
mod layer;
#[cfg(feature = "prometheus")]
mod metrics;
mod pace;
mod retry;
mod service;
mod status;

pub use spillgate::{Error as QuotaError, Quota};

pub use self::builder::ClientBuilder;
pub use self::error::{BoxError, Error};
pub use self::exchange::ResponseFuture;
pub use self::headers::{AnnouncedLimit, Dialect, RateLimitInfo, Unit, parse, parse_at};
pub use self::layer::ClientLayer;
pub use self::retry::{CloneBody, Idempotent, NoRetryBody, ReplayBody, is_not_sent};
pub use self::service::Client;
pub use self::status::{BudgetStatus, Counts, LimitKey, LimitStatus};
