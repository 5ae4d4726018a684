//! What is sent again, when, and how often.

mod body;
mod budget;
mod not_sent;
mod rules;

use std::time::Duration;

pub use self::body::{CloneBody, NoRetryBody, ReplayBody};
pub(crate) use self::budget::RetryBudget;
pub use self::not_sent::is_not_sent;
pub use self::rules::Idempotent;
pub(crate) use self::rules::{Attempt, RetryRules};

/// The longest wait that is not announced by the far side.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// A time that doubles with each repetition: `base`, twice, four times that, up to half a minute.
pub(crate) fn backoff(base: Duration, repeated: u32) -> Duration {
    let factor = 2_u32.saturating_pow(repeated);
    base.saturating_mul(factor).min(MAX_BACKOFF)
}
