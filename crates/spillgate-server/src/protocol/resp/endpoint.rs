use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use spillgate_enforce::Enforcer;
use spillgate_policy::store::Store;
use tokio::time::Instant;

use super::Password;
use super::budget::Budget;
use super::codec::Limits;
use super::session::Session;
use super::stats::{RespStats, Tally};
use crate::{Access, AnyStore};

/// What all connections share: what decides, and what clients may do.
///
/// ```
/// use std::sync::Arc;
/// use spillgate::WhenFull;
/// use spillgate_enforce::Enforcer;
/// use spillgate_policy::{Gate, Policy};
/// use spillgate_server::protocol::resp::{Endpoint, Password};
///
/// let policy = Policy::from_toml("[[limit]]\nname = 'api'\nquota = '10/s'")?;
/// let gate = Gate::new(policy.with_throttle(1_000, WhenFull::Evict))?;
/// let endpoint = Endpoint::new(Arc::new(Enforcer::new(gate))).password(Password::new("hush"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Endpoint<S: Store = AnyStore> {
    pub(super) enforcer: Arc<Enforcer<S>>,
    access: Arc<ArcSwap<Access>>,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) timeouts: Timeouts,
    pub(super) stats: RespStats,
    pub(super) started: Instant,
    next_id: AtomicU64,
}

/// Timeouts of a connection. Each may be exceeded by the shorter of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the next request of an authenticated client, or if no password is required.
    pub idle: Duration,
    /// For the rest of a request, for replies to be read, and for the first request of a client
    /// that has to authenticate.
    pub stalled: Duration,
}

/// Longer than the pools of common clients keep an idle connection.
impl Default for Timeouts {
    fn default() -> Self {
        Self { idle: Duration::from_secs(60 * 60), stalled: Duration::from_secs(30) }
    }
}

impl<S: Store> Endpoint<S> {
    /// An endpoint without a password, with the default limits and timeouts.
    pub fn new(enforcer: Arc<Enforcer<S>>) -> Self {
        Self {
            enforcer,
            access: Arc::new(ArcSwap::from_pointee(Access::loopback(None))),
            limits: Limits::default(),
            budget: Budget::new(Budget::DEFAULT),
            timeouts: Timeouts::default(),
            stats: RespStats::default(),
            started: Instant::now(),
            next_id: AtomicU64::new(1),
        }
    }

    /// Takes the password from the access rules of a server, which may change.
    pub(crate) fn access(self, access: Arc<ArcSwap<Access>>) -> Self {
        Self { access, ..self }
    }

    /// Requires a password, if there is one.
    #[must_use]
    pub fn password(self, password: Option<Password>) -> Self {
        self.set_password(password, true);
        self
    }

    /// Changes the password for clients that connect or authenticate from now on, which may have
    /// to.
    pub(super) fn set_password(&self, password: Option<Password>, is_required: bool) {
        self.access.store(Arc::new(Access::loopback(None).resp_password(password, is_required)));
    }

    pub(super) fn is_open(&self) -> bool {
        !self.access.load().requires_resp_password()
    }

    pub(super) fn has_password(&self) -> bool {
        self.access.load().has_resp_password()
    }

    /// True if this is the password. Without one any is, as in Redis.
    pub(super) fn is_password(&self, given: &[u8]) -> bool {
        self.access.load().is_resp_password(given)
    }

    /// True if this is the token of operators.
    pub(super) fn is_token(&self, given: &[u8]) -> bool {
        self.access.load().knows(given)
    }

    /// Bounds what a connection may ask for.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        // Without room for a reply no request would ever be executed.
        self.limits = Limits { backlog: limits.backlog.max(1), ..limits };
        self
    }

    /// Bounds the memory of all connections for incomplete requests and unread replies. Default:
    /// 64 MiB. When half of it is in use, a connection has 4 KiB of unread replies before its
    /// requests wait; when all of it is, one that holds more than 16 KiB is closed.
    #[must_use]
    pub fn buffers(mut self, bytes: usize) -> Self {
        self.budget = Budget::new(bytes);
        self
    }

    /// Bytes that connections hold of their [buffers](Self::buffers), except 8 KiB that each
    /// may hold uncounted.
    pub fn buffered(&self) -> usize {
        self.budget.held()
    }

    /// How many bytes of replies a connection may have unread before its requests wait.
    pub(super) fn backlog(&self) -> usize {
        self.budget.backlog(self.limits.backlog)
    }

    pub(super) fn concurrency(&self) -> usize {
        crate::store::concurrency(self.enforcer.gate().store())
    }

    /// Sets the timeouts of connections.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// What connections have done so far.
    pub fn stats(&self) -> &RespStats {
        &self.stats
    }

    pub(super) fn session(&self, peer: Option<SocketAddr>) -> Session {
        Session {
            // Relaxed: the numbers only have to differ.
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            peer,
            since: Instant::now(),
            is_authenticated: self.is_open(),
            is_operator: false,
            name: String::new(),
            transaction: None,
            tally: Tally::default(),
        }
    }
}
