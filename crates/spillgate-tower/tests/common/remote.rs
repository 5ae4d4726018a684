//! A store that has to be waited for, and that can be gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::{Decision, ManualClock, Quota, Settled, Timestamp};
use spillgate_policy::store::{
    BanRule, BanStart, Edit, LimitSpec, Memory, MemoryLimits, PermitId, Permits, Spend, Store,
    StrikeCall, Usage,
};
use spillgate_policy::{Error, Gate, Key, Policy};
use spillgate_tower::SpillgateLayer;

/// Answers later, and not at all while it is down.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) clock: Arc<ManualClock>,
    memory: Memory<Arc<ManualClock>>,
    is_down: Arc<AtomicBool>,
    /// While it is down, it is so because it is asked too much.
    is_overloaded: bool,
    published: Arc<Mutex<Vec<Edit>>>,
}

impl Default for Remote {
    fn default() -> Self {
        let clock = Arc::<ManualClock>::default();
        let memory = Memory::new(Arc::clone(&clock));
        let (is_down, published) = Default::default();
        Self { clock, memory, is_down, is_overloaded: false, published }
    }
}

impl Remote {
    /// What other nodes were told since this was last asked.
    pub(crate) fn take_published(&self) -> Vec<Edit> {
        std::mem::take(&mut self.published.lock().unwrap())
    }

    async fn travel(&self) -> Result<(), Error> {
        tokio::task::yield_now().await;
        let is_down = self.is_down.load(Ordering::Relaxed);
        match (is_down, self.is_overloaded) {
            (true, true) => Err(Error::overloaded("too many calls wait")),
            (true, false) => Err(Error::store("connection refused")),
            (false, _) => Ok(()),
        }
    }
}

impl Store for Remote {
    type Limits = MemoryLimits<Arc<ManualClock>>;

    fn is_in_process(&self) -> bool {
        false
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<Self::Limits, Error> {
        self.memory.open(limits)
    }

    fn reopen(&self, old: &Self::Limits, limits: &[LimitSpec]) -> Result<Self::Limits, Error> {
        self.memory.reopen(old, limits)
    }

    async fn decide(&self, limits: &Self::Limits, spends: &mut [Spend]) -> Result<(), Error> {
        self.travel().await?;
        self.memory.decide(limits, spends).await
    }

    async fn peek(&self, limits: &Self::Limits, spend: &Spend) -> Result<Decision, Error> {
        self.travel().await?;
        self.memory.peek(limits, spend).await
    }

    fn decide_now(&self, _: &Self::Limits, _: &mut [Spend]) -> Option<Result<(), Error>> {
        None
    }

    async fn settle(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        actual: u64,
    ) -> Result<Settled, Error> {
        self.travel().await?;
        self.memory.settle(limits, spend, actual).await
    }

    fn cancel(&self, limits: &Self::Limits, spend: Spend) {
        self.memory.cancel(limits, spend);
    }

    async fn reset(&self, limits: &Self::Limits, limit: usize, key: &Key) -> Result<(), Error> {
        self.memory.reset(limits, limit, key).await
    }

    async fn set_override(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.memory.set_override(limits, limit, key, quota, until).await
    }

    fn now(&self) -> Timestamp {
        self.memory.now()
    }

    async fn hold(
        &self,
        limits: &Self::Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Result<(), Error> {
        self.memory.hold(limits, spends, permits).await
    }

    fn hold_now(
        &self,
        _: &Self::Limits,
        _: &mut [Spend],
        _: &mut Permits,
    ) -> Option<Result<(), Error>> {
        None
    }

    async fn acquire(
        &self,
        limits: &Self::Limits,
        spend: &Spend,
        ttl: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        self.memory.acquire(limits, spend, ttl).await
    }

    async fn renew(
        &self,
        limits: &Self::Limits,
        id: PermitId,
        ttl: Duration,
    ) -> Result<bool, Error> {
        self.memory.renew(limits, id, ttl).await
    }

    async fn release(&self, limits: &Self::Limits, id: PermitId) -> Result<bool, Error> {
        self.memory.release(limits, id).await
    }

    async fn strike(
        &self,
        limits: &Self::Limits,
        limit: usize,
        key: &Key,
        rule: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, Error> {
        self.travel().await?;
        self.memory.strike(limits, limit, key, rule, call).await
    }

    async fn forgive(&self, limits: &Self::Limits, limit: usize, key: &Key) -> Result<(), Error> {
        self.memory.forgive(limits, limit, key).await
    }

    async fn publish(&self, edits: &[Edit]) -> Result<(), Error> {
        self.travel().await?;
        self.published.lock().unwrap().extend_from_slice(edits);
        Ok(())
    }

    fn usage(&self, limits: &Self::Limits, limit: usize) -> Option<Usage> {
        self.memory.usage(limits, limit)
    }
}

pub(crate) fn remote(policy: &str) -> (SpillgateLayer<Remote>, Arc<AtomicBool>) {
    layer(policy, Remote::default())
}

/// One that is asked too much from the beginning.
pub(crate) fn overloaded(policy: &str) -> SpillgateLayer<Remote> {
    let (layer, is_down) = layer(policy, Remote { is_overloaded: true, ..Remote::default() });
    is_down.store(true, Ordering::Relaxed);
    layer
}

fn layer(policy: &str, store: Remote) -> (SpillgateLayer<Remote>, Arc<AtomicBool>) {
    let is_down = Arc::clone(&store.is_down);
    let gate = Gate::with_store(Policy::from_toml(policy).unwrap(), store).unwrap();
    (SpillgateLayer::new(gate), is_down)
}
