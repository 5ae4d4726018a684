//! Where what callers have spent is kept.

mod acquired;
mod call_quota;
mod edit;
mod holds;
mod memory;
mod override_spec;
mod permit;
mod removed;
mod saved;
mod spec;
mod strike_call;
mod strikes;

use std::future::ready;
use std::time::Duration;

use spillgate::algorithm::TokenBucket;
use spillgate::{Decision, Quota, Settled, Timestamp};

pub use self::call_quota::CallQuota;
pub use self::edit::{Edit, EditLog};
pub use self::memory::{Memory, MemoryLimits};
pub use self::override_spec::OverrideSpec;
pub use self::permit::{PermitId, Permits};
pub use self::saved::SavedLimit;
pub use self::spec::{HoldSpec, LimitSpec, Outage, Sharing};
pub use self::strike_call::StrikeCall;
pub use crate::policy::ban::{BanRule, BanStart, BanState};
use crate::{Error, Key, Mode};

/// Keeps what callers have spent under each limit, and decides.
///
/// [`Memory`] is the default. A store elsewhere is asynchronous; the futures of one in
/// memory are ready at once, and cost nothing.
///
/// Every store must give the same decisions: the conformance suite of
/// `spillgate-testing` shows whether it does.
pub trait Store: Send + Sync + 'static {
    /// The limits of one policy, ready to be decided.
    type Limits: Send + Sync + 'static;

    /// True if the state lives in [`Limits`](Self::Limits), and has to move to those of the next
    /// policy while nobody decides. Then all futures of this store must be ready at once.
    fn is_in_process(&self) -> bool;

    /// Prepares the limits of a policy.
    ///
    /// # Errors
    ///
    /// If the store cannot keep them, for want of memory for example.
    fn open(&self, limits: &[LimitSpec]) -> Result<Self::Limits, Error>;

    /// Prepares the limits of the next policy. A limit that keeps its name and what it counts keeps
    /// what was spent, in tokens, up to the new quota. The state of removed limits is kept for an
    /// hour, in case they come back. If the limits live [in process](Self::is_in_process), nobody
    /// decides meanwhile.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open). Then nothing has changed.
    fn reopen(&self, old: &Self::Limits, limits: &[LimitSpec]) -> Result<Self::Limits, Error>;

    /// Spends all, or none if any enforced one is denied, and writes each decision into its spend.
    ///
    /// Enforced spends come first. Those in [shadow mode](Spend::is_shadow) are spent one by one if
    /// the others are allowed, and stay undecided otherwise.
    ///
    /// # Errors
    ///
    /// If the store could not decide. Then nothing is decided.
    fn decide(
        &self,
        limits: &Self::Limits,
        spends: &mut [Spend],
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// [Decides](Self::decide) if that needs no waiting. Otherwise nothing has happened.
    fn decide_now(&self, limits: &Self::Limits, spends: &mut [Spend]) -> Option<Result<(), Error>>;

    /// Starts to load what decisions about these keys will read, so that a batch waits for
    /// memory once.
    fn prefetch(&self, _limits: &Self::Limits, _limit: usize, _keys: impl Iterator<Item = Key>) {}

    /// What [`decide`](Self::decide) would answer, without spending: what remains is
    /// what there is now.
    fn peek(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
    ) -> impl Future<Output = Result<Decision, Error>> + Send;

    /// Replaces the cost of a spend with the actual cost: debits what is missing, up to the limit's
    /// [maximum debt](LimitSpec::max_debt), or refunds the rest. Returns the state afterwards.
    ///
    /// If the spend has a [decision](Spend::decision), tokens refilled since are not refunded.
    fn settle(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        actual: u64,
    ) -> impl Future<Output = Result<Settled, Error>> + Send;

    /// Keeps a spend with its [decision](Spend::decision) for its lifetime, so that every node can
    /// [settle](Self::settle_deposit) it by its id. Returns whether it does: a store in process
    /// does not, since there is no other node.
    ///
    /// # Errors
    ///
    /// If the store could not answer. Then it may be there all the same.
    fn deposit(
        &self,
        _limits: &Self::Limits,
        _spend: &Spend,
        _id: u128,
        _lifetime: Duration,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        ready(Ok(false))
    }

    /// Removes a [deposit](Self::deposit) of any node, and [settles](Self::settle) it, at most
    /// once. `None` if there is no deposit with that id any more.
    ///
    /// # Errors
    ///
    /// If the store could not answer. Then it may be settled, or removed and not settled; ask again
    /// to learn whether it is still there.
    fn settle_deposit(
        &self,
        _limits: &Self::Limits,
        _id: u128,
        _actual: u64,
    ) -> impl Future<Output = Result<Option<Settlement>, Error>> + Send {
        ready(Ok(None))
    }

    /// Takes an allowed spend back, if nothing has been spent since. Called when a
    /// request is dropped, so it cannot wait. A spend is cancelled once: later, another may
    /// have left the same word.
    fn cancel(&self, limits: &Self::Limits, spend: Spend);

    /// Makes a caller as if it had never been seen.
    fn reset(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives a caller a quota of its own, or takes it away. What it had spent before counts
    /// again then, if that is stricter. A store in process takes it away by itself at the end of
    /// `until`; others need not.
    fn set_override(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
        until: Option<Timestamp>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The present time, by the clock of edits, bans and permits.
    fn now(&self) -> Timestamp;

    /// Takes a permit for each of these spends, whose limits are on [concurrency](LimitSpec::hold),
    /// or none if an enforced one is denied, and writes each decision into its spend. Spends in
    /// shadow mode take permits also beyond the limit.
    ///
    /// # Errors
    ///
    /// If the store could not decide. Then nothing is held, but under limits in shadow mode: what
    /// goes ahead is in flight, whoever knows.
    fn hold(
        &self,
        limits: &Self::Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// [Holds](Self::hold) if that needs no waiting. Otherwise nothing has happened.
    fn hold_now(
        &self,
        limits: &Self::Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Option<Result<(), Error>>;

    /// Takes permits for a program elsewhere, which has to [renew](Self::renew) or
    /// [release](Self::release) them within `ttl`. `None` if that is denied.
    fn acquire(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        ttl: Duration,
    ) -> impl Future<Output = Result<(Decision, Option<PermitId>), Error>> + Send;

    /// Lets acquired permits expire `ttl` from now. Returns false if they had expired, or were
    /// released or never acquired.
    fn renew(
        &self,
        limits: &Self::Limits,
        id: PermitId,
        ttl: Duration,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Gives acquired permits back, once. Returns false if they had expired, or were released or
    /// never acquired.
    fn release(
        &self,
        limits: &Self::Limits,
        id: PermitId,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Counts offences of a caller under a limit, as [`BanRule::offences`] does. Returns the ban
    /// that they start, or find in force. The key names the caller alone, whatever else the limit
    /// counts by.
    ///
    /// A call that was counted although its answer was lost is made again, and must not count again
    /// then: it is known by its [id](StrikeCall::id), and the ban that it has started is
    /// [new](BanStart::is_new) again.
    fn strike(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        rule: &BanRule,
        call: StrikeCall,
    ) -> impl Future<Output = Result<Option<BanStart>, Error>> + Send;

    /// Forgets the offences and bans of a caller under a limit.
    fn forgive(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Shares edits with the other nodes. A store in process has none.
    fn publish(&self, _edits: &[Edit]) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Ok(()))
    }

    /// The edits of all nodes since a version.
    fn edits_since(&self, version: u64) -> impl Future<Output = Result<EditLog, Error>> + Send {
        ready(Ok(EditLog::new(version, Vec::new())))
    }

    /// Active callers and evictions of a limit; `None` if the store keeps callers elsewhere.
    fn usage(&self, limits: &Self::Limits, limit: usize) -> Option<Usage>;
}

/// A store whose state can be saved, and restored after a restart.
pub trait Saves: Store {
    /// What was spent under the limit of a place; `None` if that outlives this process
    /// anyway.
    fn save(&self, limits: &Self::Limits, limit: usize) -> Option<SavedLimit>;

    /// What was spent under removed limits, as far as it is kept.
    fn save_removed(&self, limits: &Self::Limits) -> Vec<SavedLimit>;

    /// Restores limits that still count the same things, and keeps the rest like
    /// [removed](Store::reopen) limits. `then` is the present on the clock of the saved state.
    fn restore(&self, limits: &Self::Limits, saved: Vec<SavedLimit>, then: Timestamp);
}

/// A cost for one caller under one limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Spend {
    /// The place of the limit in the policy.
    pub limit: usize,
    /// What is counted.
    pub key: Key,
    /// How much.
    pub cost: u64,
    /// A quota that comes with the call, in place of the limit's: it refills, and the limit is
    /// a token bucket. Tiers and overrides do not count then.
    pub quota: Option<CallQuota>,
    /// True if a denial does not count.
    pub is_shadow: bool,
    /// What was decided, once it is.
    pub decision: Option<Decision>,
}

impl Spend {
    /// A cost that is to be decided about, and enforced.
    #[must_use]
    pub fn new(limit: usize, key: Key, cost: u64) -> Self {
        Self { limit, key, cost, quota: None, is_shadow: false, decision: None }
    }

    /// The same with a quota that comes with the call.
    #[must_use]
    pub fn with_quota(self, quota: CallQuota) -> Self {
        Self { quota: Some(quota), ..self }
    }

    /// The bucket of the quota that comes with the call.
    #[inline]
    #[must_use]
    pub fn bucket(&self) -> Option<TokenBucket> {
        self.quota.as_ref().map(|own| own.bucket)
    }

    pub(crate) fn in_mode(mut self, mode: Mode) -> Self {
        self.is_shadow = mode == Mode::Shadow;
        self
    }

    /// What it has spent: nothing under a limit in shadow that would have denied, or could
    /// not decide.
    pub(crate) fn spent(&self) -> u64 {
        if self.is_allowed() { self.cost } else { 0 }
    }

    /// Notes that it was settled. Settled again, it is settled already.
    pub(crate) fn settled(&mut self, actual: u64, left: Decision) {
        self.cost = actual;
        self.decision = Some(left);
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.decision.is_some_and(|decision| decision.is_allowed())
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.decision.is_some_and(|decision| decision.is_denied())
    }
}

/// The result of settling a receipt.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The limit's name.
    pub limit: String,
    /// What was spent in advance.
    pub reserved: u64,
    /// The state now; `None` if the limit was removed or counts something else since. Then the
    /// reservation stays spent.
    pub settled: Option<Settled>,
}

/// How full the table of a limit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Callers currently below their full quota.
    pub callers: u64,
    /// Active callers evicted for want of room: if this grows, raise the capacity.
    pub evictions: u64,
    /// Permits held now.
    pub held: u64,
    /// Permits that expired before they were released: their holders may still run.
    pub expired: u64,
}
