//! Where a server keeps what is spent, chosen when it starts.

use std::sync::Arc;
use std::time::Duration;

use spillgate::{Decision, KeyedState, Quota, Seed, Settled, Timestamp};
use spillgate_policy::store::{
    LimitSpec, Memory, MemoryLimits, SavedLimit, Saves, Settlement, Spend, Store, Usage,
};
use spillgate_policy::{Error, Key};
use spillgate_redis::client::Client;
use spillgate_redis::{RedisLimits, RedisStore};

/// How many questions are worth deciding at once: one, if the store decides without waiting.
pub(crate) fn concurrency(store: &impl Store) -> usize {
    // More than a client sends at once, and few compared with what Redis takes.
    if store.is_in_process() { 1 } else { 64 }
}

/// Any of the stores that a server may have: its own memory, which is the default.
#[derive(Debug)]
pub enum AnyStore {
    /// The memory of this process.
    Memory(Memory),
    /// A Redis or Valkey that many servers share.
    Shared(Arc<SharedStore>),
}

/// A store in a real Redis or Valkey.
pub type SharedStore = RedisStore<Client>;

/// The limits of one policy, with the store that has made them ready.
#[derive(Debug)]
pub enum AnyLimits {
    /// In the memory of this process.
    Memory(Memory, MemoryLimits),
    /// In a store that many servers share.
    Shared(Arc<SharedStore>, RedisLimits),
}

impl AnyStore {
    /// The seed under which callers are hashed, for snapshots. Redis hashes by a secret instead, so
    /// there it is a new one each time.
    pub(crate) fn seed(&self) -> Seed {
        match self {
            Self::Memory(memory) => memory.seed(),
            Self::Shared(_) => KeyedState::new().seed(),
        }
    }

    /// The store that many servers share, if it is one.
    #[must_use]
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

impl From<Memory> for AnyStore {
    fn from(memory: Memory) -> Self {
        Self::Memory(memory)
    }
}

impl From<SharedStore> for AnyStore {
    fn from(store: SharedStore) -> Self {
        Self::Shared(Arc::new(store))
    }
}

// Futures of a store elsewhere are in boxes: every connection has room for the largest that
// it may wait for, also on a server that never does.
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
        match self {
            Self::Memory(memory) => Ok(AnyLimits::Memory(*memory, memory.open(limits)?)),
            Self::Shared(store) => Ok(AnyLimits::Shared(Arc::clone(store), store.open(limits)?)),
        }
    }

    fn reopen(&self, old: &AnyLimits, limits: &[LimitSpec]) -> Result<AnyLimits, Error> {
        match old {
            AnyLimits::Memory(memory, old) => {
                Ok(AnyLimits::Memory(*memory, memory.reopen(old, limits)?))
            }
            AnyLimits::Shared(store, old) => {
                Ok(AnyLimits::Shared(Arc::clone(store), store.reopen(old, limits)?))
            }
        }
    }

    async fn decide(&self, limits: &AnyLimits, spends: &mut [Spend]) -> Result<(), Error> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.decide(limits, spends).await,
            AnyLimits::Shared(store, limits) => Box::pin(store.decide(limits, spends)).await,
        }
    }

    #[inline]
    fn decide_now(&self, limits: &AnyLimits, spends: &mut [Spend]) -> Option<Result<(), Error>> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.decide_now(limits, spends),
            AnyLimits::Shared(store, limits) => store.decide_now(limits, spends),
        }
    }

    fn prefetch(&self, limits: &AnyLimits, limit: usize, keys: impl Iterator<Item = Key>) {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.prefetch(limits, limit, keys),
            AnyLimits::Shared(store, limits) => store.prefetch(limits, limit, keys),
        }
    }

    async fn peek(&self, limits: &AnyLimits, spend: &Spend) -> Result<Decision, Error> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.peek(limits, spend).await,
            AnyLimits::Shared(store, limits) => Box::pin(store.peek(limits, spend)).await,
        }
    }

    async fn settle(
        &self,
        limits: &AnyLimits,
        spend: &Spend,
        actual: u64,
    ) -> Result<Settled, Error> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.settle(limits, spend, actual).await,
            AnyLimits::Shared(store, limits) => Box::pin(store.settle(limits, spend, actual)).await,
        }
    }

    async fn deposit(
        &self,
        limits: &AnyLimits,
        spend: &Spend,
        id: u128,
        lifetime: Duration,
    ) -> Result<bool, Error> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.deposit(limits, spend, id, lifetime).await,
            AnyLimits::Shared(store, limits) => {
                Box::pin(store.deposit(limits, spend, id, lifetime)).await
            }
        }
    }

    async fn settle_deposit(
        &self,
        limits: &AnyLimits,
        id: u128,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.settle_deposit(limits, id, actual).await,
            AnyLimits::Shared(store, limits) => {
                Box::pin(store.settle_deposit(limits, id, actual)).await
            }
        }
    }

    fn cancel(&self, limits: &AnyLimits, spend: Spend) {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.cancel(limits, spend),
            AnyLimits::Shared(store, limits) => store.cancel(limits, spend),
        }
    }

    async fn reset(&self, limits: &AnyLimits, limit: usize, key: &Key) -> Result<(), Error> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.reset(limits, limit, key).await,
            AnyLimits::Shared(store, limits) => Box::pin(store.reset(limits, limit, key)).await,
        }
    }

    async fn set_override(
        &self,
        limits: &AnyLimits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
    ) -> Result<(), Error> {
        match limits {
            AnyLimits::Memory(memory, limits) => {
                memory.set_override(limits, limit, key, quota).await
            }
            AnyLimits::Shared(store, limits) => {
                Box::pin(store.set_override(limits, limit, key, quota)).await
            }
        }
    }

    fn usage(&self, limits: &AnyLimits, limit: usize) -> Option<Usage> {
        match limits {
            AnyLimits::Memory(memory, limits) => memory.usage(limits, limit),
            AnyLimits::Shared(store, limits) => store.usage(limits, limit),
        }
    }
}

/// What is shared outlives every server, so that a snapshot has none of it.
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
        match limits {
            AnyLimits::Memory(memory, limits) => memory.restore(limits, saved, then),
            AnyLimits::Shared(..) => {}
        }
    }
}
