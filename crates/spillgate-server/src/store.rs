//! Where a server keeps what is spent, chosen when it starts.

use std::sync::Arc;
use std::time::Duration;

use spillgate::{Decision, KeyedState, Quota, Seed, Settled, Timestamp};
use spillgate_policy::store::{
    BanRule, BanStart, Edit, EditLog, LimitSpec, Memory, MemoryLimits, PermitId, Permits,
    SavedLimit, Saves, Settlement, Spend, Store, StrikeCall, Usage,
};
use spillgate_policy::{Error, Key};
use spillgate_redis::client::Client;
use spillgate_redis::{RedisLimits, RedisStore};

/// How many questions are worth deciding at once: one, if the store decides without waiting.
pub(crate) fn concurrency(store: &impl Store) -> usize {
    // More than a client sends at once, and few compared with what Redis takes.
    if store.is_in_process() { 1 } else { 64 }
}

/// The memory of this process, or a Redis that many servers share.
#[derive(Debug)]
pub enum AnyStore {
    /// The memory of this process.
    Memory(Memory),
    /// A Redis or Valkey that many servers share.
    Shared(Arc<SharedStore>),
}

/// A store in Redis or Valkey.
pub type SharedStore = RedisStore<Client>;

/// The limits of one policy, with their store.
#[derive(Debug)]
pub enum AnyLimits {
    /// In the memory of this process.
    Memory(Memory, MemoryLimits),
    /// In Redis.
    Shared(Arc<SharedStore>, RedisLimits),
}

impl AnyStore {
    /// The seed that callers are hashed with, for snapshots. Redis hashes with a secret instead.
    pub(crate) fn seed(&self) -> Seed {
        match self {
            Self::Memory(memory) => memory.seed(),
            Self::Shared(_) => KeyedState::new().seed(),
        }
    }

    /// The store in Redis, if it is one.
    pub fn shared(&self) -> Option<&Arc<SharedStore>> {
        match self {
            Self::Memory(_) => None,
            Self::Shared(store) => Some(store),
        }
    }
}

impl Default for AnyStore {
    fn default() -> Self {
        Self::Memory(Memory::default())
    }
}

macro_rules! call {
    ($limits:ident, $store:ident => $call:expr) => {
        match $limits {
            AnyLimits::Memory($store, $limits) => $call,
            AnyLimits::Shared($store, $limits) => $call,
        }
    };
}

/// Waits for the store of these limits. Futures of Redis are boxed: every connection reserves room
/// for the largest future that it may wait for.
macro_rules! wait {
    ($limits:ident, $store:ident => $call:expr) => {
        match $limits {
            AnyLimits::Memory($store, $limits) => $call.await,
            AnyLimits::Shared($store, $limits) => Box::pin($call).await,
        }
    };
}

impl Store for AnyStore {
    type Limits = AnyLimits;

    #[inline]
    fn is_in_process(&self) -> bool {
        match self {
            Self::Memory(memory) => memory.is_in_process(),
            Self::Shared(store) => store.is_in_process(),
        }
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<AnyLimits, Error> {
        Ok(match self {
            Self::Memory(memory) => AnyLimits::Memory(*memory, memory.open(limits)?),
            Self::Shared(store) => AnyLimits::Shared(Arc::clone(store), store.open(limits)?),
        })
    }

    fn reopen(&self, old: &AnyLimits, limits: &[LimitSpec]) -> Result<AnyLimits, Error> {
        Ok(match old {
            AnyLimits::Memory(memory, old) => {
                AnyLimits::Memory(*memory, memory.reopen(old, limits)?)
            }
            AnyLimits::Shared(store, old) => {
                AnyLimits::Shared(Arc::clone(store), store.reopen(old, limits)?)
            }
        })
    }

    async fn decide(&self, limits: &AnyLimits, spends: &mut [Spend]) -> Result<(), Error> {
        wait!(limits, store => store.decide(limits, spends))
    }

    #[inline]
    fn decide_now(&self, limits: &AnyLimits, spends: &mut [Spend]) -> Option<Result<(), Error>> {
        call!(limits, store => store.decide_now(limits, spends))
    }

    fn prefetch(&self, limits: &AnyLimits, limit: usize, keys: impl Iterator<Item = Key>) {
        call!(limits, store => store.prefetch(limits, limit, keys));
    }

    async fn peek(&self, limits: &AnyLimits, spend: &Spend) -> Result<Decision, Error> {
        wait!(limits, store => store.peek(limits, spend))
    }

    async fn settle(
        &self,
        limits: &AnyLimits,
        spend: &Spend,
        actual: u64,
    ) -> Result<Settled, Error> {
        wait!(limits, store => store.settle(limits, spend, actual))
    }

    async fn deposit(
        &self,
        limits: &AnyLimits,
        spend: &Spend,
        id: u128,
        lifetime: Duration,
    ) -> Result<bool, Error> {
        wait!(limits, store => store.deposit(limits, spend, id, lifetime))
    }

    async fn settle_deposit(
        &self,
        limits: &AnyLimits,
        id: u128,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        wait!(limits, store => store.settle_deposit(limits, id, actual))
    }

    fn cancel(&self, limits: &AnyLimits, spend: Spend) {
        call!(limits, store => store.cancel(limits, spend));
    }

    async fn reset(&self, limits: &AnyLimits, limit: usize, key: &Key) -> Result<(), Error> {
        wait!(limits, store => store.reset(limits, limit, key))
    }

    async fn set_override(
        &self,
        limits: &AnyLimits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        wait!(limits, store => store.set_override(limits, limit, key, quota, until))
    }

    fn now(&self) -> Timestamp {
        match self {
            Self::Memory(memory) => memory.now(),
            Self::Shared(store) => store.now(),
        }
    }

    async fn hold(
        &self,
        limits: &AnyLimits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Result<(), Error> {
        wait!(limits, store => store.hold(limits, spends, permits))
    }

    fn hold_now(
        &self,
        limits: &AnyLimits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Option<Result<(), Error>> {
        call!(limits, store => store.hold_now(limits, spends, permits))
    }

    async fn acquire(
        &self,
        limits: &AnyLimits,
        spend: &Spend,
        ttl: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        wait!(limits, store => store.acquire(limits, spend, ttl))
    }

    async fn renew(&self, limits: &AnyLimits, id: PermitId, ttl: Duration) -> Result<bool, Error> {
        wait!(limits, store => store.renew(limits, id, ttl))
    }

    async fn release(&self, limits: &AnyLimits, id: PermitId) -> Result<bool, Error> {
        wait!(limits, store => store.release(limits, id))
    }

    async fn strike(
        &self,
        limits: &AnyLimits,
        limit: usize,
        key: &Key,
        rule: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, Error> {
        wait!(limits, store => store.strike(limits, limit, key, rule, call))
    }

    async fn forgive(&self, limits: &AnyLimits, limit: usize, key: &Key) -> Result<(), Error> {
        wait!(limits, store => store.forgive(limits, limit, key))
    }

    async fn publish(&self, edits: &[Edit]) -> Result<(), Error> {
        match self {
            Self::Memory(memory) => memory.publish(edits).await,
            Self::Shared(store) => store.publish(edits).await,
        }
    }

    async fn edits_since(&self, version: u64) -> Result<EditLog, Error> {
        match self {
            Self::Memory(memory) => memory.edits_since(version).await,
            Self::Shared(store) => store.edits_since(version).await,
        }
    }

    fn usage(&self, limits: &AnyLimits, limit: usize) -> Option<Usage> {
        call!(limits, store => store.usage(limits, limit))
    }
}

/// State in Redis outlives every server, so a snapshot has none of it.
impl Saves for AnyStore {
    fn save(&self, limits: &AnyLimits, limit: usize) -> Option<SavedLimit> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.save(limits, limit),
            AnyLimits::Shared(..) => None,
        }
    }

    fn save_removed(&self, limits: &AnyLimits) -> Vec<SavedLimit> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.save_removed(limits),
            AnyLimits::Shared(..) => Vec::new(),
        }
    }

    fn restore(&self, limits: &AnyLimits, saved: Vec<SavedLimit>, then: Timestamp) {
        if let AnyLimits::Memory(memory, limits) = limits {
            memory.restore(limits, saved, then);
        }
    }
}
