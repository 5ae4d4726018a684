//! A store that lets something happen while it decides.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::{Decision, ManualClock, Quota, Settled, Timestamp};
use spillgate_policy::store::{
    BanRule, BanStart, LimitSpec, Memory, MemoryLimits, PermitId, Permits, Spend, Store,
    StrikeCall, Usage,
};
use spillgate_policy::{Error, Key};

type Limits = MemoryLimits<ManualClock>;

/// Happens once, while the store decides.
type Hook = Box<dyn FnOnce() + Send>;

#[derive(Clone, Default)]
pub(super) struct Stealing {
    pub(super) memory: Memory<ManualClock>,
    /// True if it behaves as one elsewhere.
    pub(super) is_elsewhere: bool,
    pub(super) fails: Arc<AtomicBool>,
    pub(super) hook: Arc<Mutex<Option<Hook>>>,
    /// How often it was asked.
    pub(super) decided: Arc<Mutex<u32>>,
}

impl Stealing {
    fn steal(&self) -> Result<(), Error> {
        *self.decided.lock().unwrap() += 1;
        let hook = self.hook.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        match self.fails.load(Ordering::Relaxed) {
            true => Err(Error::store("gone")),
            false => Ok(()),
        }
    }
}

impl Store for Stealing {
    type Limits = Limits;

    fn is_in_process(&self) -> bool {
        !self.is_elsewhere
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<Limits, Error> {
        self.memory.open(limits)
    }

    fn reopen(&self, old: &Limits, limits: &[LimitSpec]) -> Result<Limits, Error> {
        self.memory.reopen(old, limits)
    }

    async fn decide(&self, limits: &Limits, spends: &mut [Spend]) -> Result<(), Error> {
        self.steal()?;
        self.memory.decide(limits, spends).await
    }

    fn decide_now(&self, limits: &Limits, spends: &mut [Spend]) -> Option<Result<(), Error>> {
        match self.steal() {
            Ok(()) => self.memory.decide_now(limits, spends),
            Err(error) => Some(Err(error)),
        }
    }

    async fn peek(&self, limits: &Limits, spend: &Spend) -> Result<Decision, Error> {
        self.memory.peek(limits, spend).await
    }

    async fn settle(&self, limits: &Limits, spend: &Spend, actual: u64) -> Result<Settled, Error> {
        self.memory.settle(limits, spend, actual).await
    }

    fn cancel(&self, limits: &Limits, spend: Spend) {
        self.memory.cancel(limits, spend);
    }

    async fn reset(&self, limits: &Limits, limit: usize, key: &Key) -> Result<(), Error> {
        self.memory.reset(limits, limit, key).await
    }

    async fn set_override(
        &self,
        limits: &Limits,
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
        limits: &Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Result<(), Error> {
        self.memory.hold(limits, spends, permits).await
    }

    fn hold_now(
        &self,
        limits: &Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Option<Result<(), Error>> {
        self.memory.hold_now(limits, spends, permits)
    }

    async fn acquire(
        &self,
        limits: &Limits,
        spend: &Spend,
        ttl: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        self.memory.acquire(limits, spend, ttl).await
    }

    async fn renew(&self, limits: &Limits, id: PermitId, ttl: Duration) -> Result<bool, Error> {
        self.memory.renew(limits, id, ttl).await
    }

    async fn release(&self, limits: &Limits, id: PermitId) -> Result<bool, Error> {
        self.memory.release(limits, id).await
    }

    async fn strike(
        &self,
        limits: &Limits,
        limit: usize,
        key: &Key,
        rule: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, Error> {
        self.memory.strike(limits, limit, key, rule, call).await
    }

    async fn forgive(&self, limits: &Limits, limit: usize, key: &Key) -> Result<(), Error> {
        self.memory.forgive(limits, limit, key).await
    }

    fn usage(&self, limits: &Limits, limit: usize) -> Option<Usage> {
        self.memory.usage(limits, limit)
    }
}
