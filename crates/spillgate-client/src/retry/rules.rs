use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::request::Parts;
use http::{Method, StatusCode};

use super::{backoff, is_not_sent};
use crate::headers::RateLimitInfo;
use crate::pace::is_refusal;

/// Marks a request, in its extensions, as safe to repeat whatever its method.
///
/// ```
/// use spillgate_client::Idempotent;
///
/// let request = http::Request::post("https://api.example.com/search").extension(Idempotent).body(());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotent;

/// Which requests are sent again.
pub(crate) struct RetryRules {
    pub(crate) max_retries: u32,
    pub(crate) base: Duration,
    pub(crate) idempotency_key: bool,
    pub(crate) is_not_sent: Box<IsNotSent>,
}

pub(crate) type IsNotSent = dyn Fn(&(dyn Error + 'static)) -> bool + Send + Sync;

/// How an attempt ended.
pub(crate) enum Attempt<'a> {
    Answered { status: StatusCode, info: &'a RateLimitInfo },
    Failed(&'a (dyn Error + 'static)),
}

impl Default for RetryRules {
    fn default() -> Self {
        Self {
            max_retries: 3,
            base: Duration::from_millis(100),
            idempotency_key: true,
            is_not_sent: Box::new(is_not_sent),
        }
    }
}

impl RetryRules {
    /// True if the request may be repeated, whatever becomes of it.
    pub(crate) fn is_idempotent(&self, request: &Parts) -> bool {
        let has_key = || self.idempotency_key && request.headers.contains_key("idempotency-key");
        is_idempotent(&request.method)
            || request.extensions.get::<Idempotent>().is_some()
            || has_key()
    }

    /// True if it is safe, and may help, to send a request again.
    pub(crate) fn should_repeat(&self, is_idempotent: bool, attempt: &Attempt<'_>) -> bool {
        match attempt {
            Attempt::Failed(error) => is_idempotent || (self.is_not_sent)(*error),
            Attempt::Answered { info, .. } if info.should_retry == Some(false) => false,
            Attempt::Answered { status, info } => {
                let is_invited = info.should_retry == Some(true)
                    && (status.is_client_error() || status.is_server_error());
                refused_unprocessed(*status, info)
                    || is_idempotent
                        && (is_invited || is_transient(*status) || is_refusal(*status, info))
            }
        }
    }

    /// The wait before a repetition: anything up to a time that doubles. What the far side asks for comes
    /// on top, for all requests together.
    pub(crate) fn delay(&self, repeated: u32, random: f64) -> Duration {
        backoff(self.base, repeated).mul_f64(random)
    }
}

/// The idempotent methods of RFC 9110.
fn is_idempotent(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE]
        .contains(method)
}

/// True if the far side says that it has not processed the request, and when it would.
fn refused_unprocessed(status: StatusCode, info: &RateLimitInfo) -> bool {
    let is_refusal =
        [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
    is_refusal && info.retry_after.is_some()
}

/// Statuses that another attempt may not get.
fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

impl fmt::Debug for RetryRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryRules")
            .field("max_retries", &self.max_retries)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}
