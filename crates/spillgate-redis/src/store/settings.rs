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
#[must_use = "settings do nothing by themselves"]
pub struct Settings {
    pub(super) secret: Secret,
    pub(super) nodes: Option<NonZeroU32>,
    pub(super) refuses_mismatch: bool,
    pub(super) remembered: usize,
    pub(super) leases: usize,
    /// As in the scripts: a Redis clock that steps back by less forgives nothing.
    pub(super) margin: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

setters! { Settings {
    /// Hashes the keys of callers under a secret. Default: [none](Secret::public).
    secret(secret: Secret): secret = secret;

    /// The number of nodes. Default: the nodes that announced themselves lately, and one until
    /// known.
    nodes(nodes: NonZeroU32): nodes = Some(nodes);

    /// Refuses to join nodes with another secret or policy: call
    /// [`RedisStore::join`](super::RedisStore::join) before deciding anything. Default: joins them
    /// and warns.
    refuse_mismatch(refuses: bool): refuses_mismatch = refuses;

    /// Remembers the last state of about so many callers, 140 bytes each: a denied caller is denied
    /// again without asking Redis, and an outage continues from what was spent. 0 disables it.
    /// Default: 65,536.
    remembered(callers: usize): remembered = callers;

    /// Leases for up to so many callers. Default: 16,384.
    leases(callers: usize): leases = callers;

    /// Keeps states for longer than needed by this margin.
    #[cfg(any(test, feature = "testing"))]
    margin(margin: Duration): margin = margin;

    /// Another clock than the system's. It only measures elapsed time; the time of decisions comes
    /// from Redis.
    clock(clock: impl Clock + 'static): clock = Arc::new(clock);
} }

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
