use std::fmt;
use std::time::Duration;

/// The error of a service, in the form that tower's middleware uses.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a request has no response: it was not sent, or the service behind the layer failed.
///
/// A refusal of the far side that is not retried is a response, not an error.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Limited { host: Box<str>, retry_after: Option<Duration> },
    QueueFull { host: Box<str>, waiting: usize },
    Service(BoxError),
}

impl Error {
    pub(crate) fn limited(host: &str, retry_after: Option<Duration>) -> Self {
        Self(Kind::Limited { host: host.into(), retry_after })
    }

    pub(crate) fn queue_full(host: &str, waiting: usize) -> Self {
        Self(Kind::QueueFull { host: host.into(), waiting })
    }

    pub(crate) fn service(error: BoxError) -> Self {
        Self(Kind::Service(error))
    }

    /// True if the request was not sent, since it would have had to wait for too long.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        matches!(self.0, Kind::Limited { .. })
    }

    /// True if the request was not sent, since too many wait already.
    #[must_use]
    pub fn is_queue_full(&self) -> bool {
        matches!(self.0, Kind::QueueFull { .. })
    }

    /// When a request that was [not sent](Self::is_limited) could be, as far as that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0 {
            Kind::Limited { retry_after, .. } => retry_after,
            _ => None,
        }
    }

    /// The error of the service behind the layer, if it is one.
    pub fn into_service_error(self) -> Result<BoxError, Self> {
        match self.0 {
            Kind::Service(error) => Ok(error),
            _ => Err(self),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Limited { host, retry_after: Some(time) } => {
                let millis = time.as_nanos().div_ceil(1_000_000);
                write!(f, "the rate limit of {host:?} leaves no room for {millis} ms, ")?;
                f.write_str(
                    "which is longer than this request may wait; retry then, or raise `max_wait`",
                )
            }
            Kind::Limited { host, retry_after: None } => {
                write!(f, "the time to wait for room under the rate limit of {host:?} is over; ")?;
                f.write_str("send fewer requests at once, or raise `max_wait`")
            }
            Kind::QueueFull { host, waiting } => write!(
                f,
                "{waiting} requests wait for {host:?} already; send fewer at once, or raise `max_queue`"
            ),
            Kind::Service(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Service(error) => error.source(),
            _ => None,
        }
    }
}
