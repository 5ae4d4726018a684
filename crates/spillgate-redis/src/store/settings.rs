use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::{Clock, SystemClock};

use crate::Secret;

/// How a node shares limits with others.
///
/// ```
/// use std::num::NonZeroU32;
/// use spillgate_redis::{Secret, Settings};
///
/// let settings = Settings::default()
///     .secret(Secret::new("correct horse battery staple")?)
///     .nodes(NonZeroU32::new(3).unwrap());
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
#[derive(Clone)]
pub struct Settings {
    pub(super) secret: Secret,
    pub(super) nodes: Option<NonZeroU32>,
    pub(super) refuses_mismatch: bool,
    pub(super) remembered: usize,
    pub(super) leases: usize,
    /// As the scripts have it: Redis's clock that goes back by less forgives nobody.
    pub(super) margin: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

impl Settings {
    /// Hashes callers under a secret. Default: [none](Secret::public).
    #[must_use]
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = secret;
        self
    }

    /// Says how many nodes there are. Default: as many as have told Redis lately that
    /// they are there, and one until that is known.
    #[must_use]
    pub fn nodes(mut self, nodes: NonZeroU32) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Does not join nodes that have another secret or policy: a program that has this asks
    /// [`RedisStore::join`](super::RedisStore::join) before it decides anything. Default: joins
    /// them, and warns.
    #[must_use]
    pub fn refuse_mismatch(mut self, refuses: bool) -> Self {
        self.refuses_mismatch = refuses;
        self
    }

    /// Remembers the last words of about so many callers, of 140 bytes each: by them a caller who
    /// was denied is denied again without asking, and in an outage goes on from what it had
    /// spent. With 0, of none. Default: 65,536.
    #[must_use]
    pub fn remembered(mut self, callers: usize) -> Self {
        self.remembered = callers;
        self
    }

    /// Holds leases of so many callers at once. Default: 16,384.
    #[must_use]
    pub fn leases(mut self, callers: usize) -> Self {
        self.leases = callers;
        self
    }

    /// Keeps states for so much longer than they are needed, as Redis is told to.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn margin(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// Reads another clock than the system's. It only measures how much time goes by; what
    /// time it is, Redis says.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            secret: Secret::default(),
            nodes: None,
            refuses_mismatch: false,
            remembered: 65_536,
            leases: 16_384,
            margin: Duration::from_secs(1),
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("secret", &self.secret)
            .field("nodes", &self.nodes)
            .field("refuses_mismatch", &self.refuses_mismatch)
            .field("remembered", &self.remembered)
            .field("leases", &self.leases)
            .finish_non_exhaustive()
    }
}
