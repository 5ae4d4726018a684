use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use spillgate::SystemClock;
use tokio::time::Instant;

use super::budget::Budget;
use super::codec::Limits;
use super::session::Session;
use super::stats::{Stats, Tally};
use super::{Password, Throttle};

/// What all connections share: what they ask, and what they may.
///
/// ```
/// use spillgate_policy::{Gate, Policy};
/// use spillgate_server::protocol::resp::{Endpoint, Password, Throttle};
///
/// let gate = Gate::new(Policy::from_toml("[[limit]]\nname = 'api'\nquota = '10/s'")?)?;
/// let endpoint = Endpoint::new(Throttle::new(1_000)?, gate).password(Password::new("hush"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Endpoint<C, K = SystemClock> {
    pub(super) throttle: Throttle<K>,
    pub(super) checks: C,
    password: ArcSwapOption<Asked>,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) timeouts: Timeouts,
    pub(super) stats: Stats,
    pub(super) started: Instant,
    next_id: AtomicU64,
}

/// A password, and whether a client has to give it.
#[derive(Debug)]
struct Asked {
    password: Password,
    is_required: bool,
}

/// How long a connection is waited for. Each may be exceeded by the shorter of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the next request of a client that need not authenticate, or has.
    pub idle: Duration,
    /// For the rest of a request, for replies to be read, and for strangers to say
    /// something.
    pub stalled: Duration,
}

/// Longer than the pools of common clients keep an idle connection, so that it is they
/// who close it.
impl Default for Timeouts {
    fn default() -> Self {
        Self { idle: Duration::from_secs(60 * 60), stalled: Duration::from_secs(30) }
    }
}

impl<C, K> Endpoint<C, K> {
    /// An endpoint without a password, with the default limits and timeouts.
    pub fn new(throttle: Throttle<K>, checks: C) -> Self {
        Self {
            throttle,
            checks,
            password: ArcSwapOption::empty(),
            limits: Limits::default(),
            budget: Budget::new(Budget::DEFAULT),
            timeouts: Timeouts::default(),
            stats: Stats::default(),
            started: Instant::now(),
            next_id: AtomicU64::new(1),
        }
    }

    /// Asks something else what `SG.CHECK` asks.
    #[must_use]
    pub fn asking<D>(self, checks: D) -> Endpoint<D, K> {
        let Self {
            throttle,
            checks: _,
            password,
            limits,
            budget,
            timeouts,
            stats,
            started,
            next_id,
        } = self;
        Endpoint { throttle, checks, password, limits, budget, timeouts, stats, started, next_id }
    }

    /// Answers only to clients that give the password, if there is one.
    #[must_use]
    pub fn password(self, password: Option<Password>) -> Self {
        self.set_password(password);
        self
    }

    /// Changes the password for clients that connect, or give one, from now on.
    pub fn set_password(&self, password: Option<Password>) {
        self.ask(password, true);
    }

    /// Knows a password, if there is one, that clients may give and need not.
    pub fn set_optional_password(&self, password: Option<Password>) {
        self.ask(password, false);
    }

    fn ask(&self, password: Option<Password>, is_required: bool) {
        self.password.store(password.map(|password| Arc::new(Asked { password, is_required })));
    }

    /// True if nobody has to give a password.
    pub(super) fn is_open(&self) -> bool {
        self.password.load().as_ref().is_none_or(|asked| !asked.is_required)
    }

    /// True if there is a password that a client can give.
    pub(super) fn has_password(&self) -> bool {
        self.password.load().is_some()
    }

    /// True if this is the password. Without one any is, as in Redis.
    pub(super) fn is_password(&self, given: &[u8]) -> bool {
        self.password.load().as_ref().is_none_or(|asked| asked.password.matches(given))
    }

    /// Bounds what a connection may ask for.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        // Without room for a reply no request would ever be carried out.
        self.limits = Limits { backlog: limits.backlog.max(1), ..limits };
        self
    }

    /// Bounds the memory that all connections take together for requests that are not whole
    /// and replies that are not read: 64 MiB unless told otherwise. When half of it is taken, a
    /// connection has 4 KiB of unread replies before its requests wait; when all of it is, one
    /// that holds more than 16 KiB is closed.
    #[must_use]
    pub fn buffers(mut self, bytes: usize) -> Self {
        self.budget = Budget::new(bytes);
        self
    }

    /// Bytes that connections hold of their [buffers](Self::buffers), but for 8 KiB that each
    /// may hold uncounted.
    pub fn buffered(&self) -> usize {
        self.budget.held()
    }

    /// How many bytes of replies a connection may have unread before its requests wait.
    pub(super) fn backlog(&self) -> usize {
        self.budget.backlog(self.limits.backlog)
    }

    /// Bounds how long a connection is waited for.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The state of `CL.THROTTLE`, for snapshots.
    pub fn throttle(&self) -> &Throttle<K> {
        &self.throttle
    }

    /// What connections have done so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    pub(super) fn session(&self, peer: Option<SocketAddr>) -> Session {
        Session {
            // Relaxed: the numbers only have to differ.
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            peer,
            since: Instant::now(),
            is_authenticated: self.is_open(),
            name: String::new(),
            transaction: None,
            tally: Tally::default(),
        }
    }
}
