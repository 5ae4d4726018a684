//! Where what callers have spent is kept.

mod memory;
mod saved;

use tollgate::{AlgorithmKind, Decision, Quota, Start, WhenFull};

pub use self::memory::{Memory, MemoryLimits};
pub use self::saved::SavedLimit;
use crate::{Error, Key};

/// Keeps what callers have spent under each limit, and decides.
///
/// [`Memory`] is the default. A store elsewhere is asynchronous; the futures of one in
/// memory are ready at once, and cost nothing.
///
/// Every store must give the same decisions: the conformance suite of
/// `tollgate-testing` shows whether it does.
pub trait Store: Send + Sync + 'static {
    /// The limits of one policy, ready to be decided.
    type Limits: Send + Sync + 'static;

    /// True if what is spent lives in [`Limits`](Self::Limits), so that it has to be
    /// carried over to those of the next policy while nobody decides. If it is, the
    /// futures of this store must be ready at once.
    const IN_PROCESS: bool;

    /// Makes the limits of a policy ready.
    ///
    /// # Errors
    ///
    /// If the store cannot keep them, for want of memory for example.
    fn open(&self, limits: &[LimitSpec]) -> Result<Self::Limits, Error>;

    /// Makes the limits of the next policy ready. Those of a name that was there before,
    /// and that count the same things, keep what was spent, in tokens, up to the new
    /// quota. If the limits live [in process](Self::IN_PROCESS), nobody decides meanwhile.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open). Then nothing has changed.
    fn reopen(&self, old: &Self::Limits, limits: &[LimitSpec]) -> Result<Self::Limits, Error>;

    /// Spends every charge, or none if any is denied, and writes what was decided into
    /// each. If the call is denied, charges that would have passed say so.
    fn decide(
        &self,
        limits: &Self::Limits,
        charges: &mut [Charge],
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// What [`decide`](Self::decide) would answer, without spending: what remains is
    /// what there is now.
    fn peek(
        &self,
        limits: &Self::Limits,
        charge: &Charge,
    ) -> impl Future<Output = Result<Decision, Error>> + Send;

    /// Takes an amount whether or not it passes, going into debt.
    fn debit(
        &self,
        limits: &Self::Limits,
        charge: &Charge,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives an amount back, never more than was spent.
    fn refund(
        &self,
        limits: &Self::Limits,
        charge: &Charge,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Takes an allowed charge back, if nothing has been spent since. Called when a
    /// request is dropped, so it cannot wait.
    fn cancel(&self, limits: &Self::Limits, charge: &Charge);

    /// Makes a caller as if it had never been seen.
    fn reset(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives a caller a quota of its own, or takes it away.
    fn set_override(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// How a limit is doing, as far as the store knows.
    fn usage(&self, limits: &Self::Limits, limit: usize) -> Usage;
}

/// A limit, as a store needs to know it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LimitSpec {
    /// The name, by which it is known from one policy to the next.
    pub name: String,
    /// What it counts apart. If this changes, keys mean something else.
    pub per: String,
    /// How the quota is spent.
    pub algorithm: AlgorithmKind,
    /// What a caller never seen has.
    pub start: Start,
    /// The quota of callers without a tier or an override.
    pub quota: Quota,
    /// The tiers, by name. [`Key::tier`] is a place among them.
    pub tiers: Vec<(String, Quota)>,
    /// The quotas of single callers.
    pub overrides: Vec<(Key, Quota)>,
    /// For how many callers with something spent at once there is room.
    pub capacity: usize,
    /// What becomes of a new caller when there is no room.
    pub when_full: WhenFull,
}

/// A cost for one caller under one limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Charge {
    /// The place of the limit in the policy.
    pub limit: usize,
    /// What is counted.
    pub key: Key,
    /// How much.
    pub cost: u64,
    /// What was decided, once it is.
    pub decision: Option<Decision>,
}

impl Charge {
    pub(crate) fn new(limit: usize, key: Key, cost: u64) -> Self {
        Self { limit, key, cost, decision: None }
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.decision.is_some_and(|decision| decision.is_allowed())
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.decision.is_some_and(|decision| decision.is_denied())
    }
}

/// How a limit is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Callers with something spent.
    pub callers: u64,
    /// Callers forgotten although they had something spent: if this grows, the
    /// capacity is too small.
    pub evictions: u64,
}
