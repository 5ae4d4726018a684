//! A store that behaves as one elsewhere: it is told of edits, knows overrides without an expiry, and
//! can fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::{Decision, ManualClock, Quota, Settled, Timestamp};
use spillgate_policy::store::{
    BanRule, BanStart, Edit, LimitSpec, Memory, MemoryLimits, PermitId, Permits, Spend, Store,
    StrikeCall, Usage,
};
use spillgate_policy::{Error, Key};

#[derive(Clone, Default)]
pub(crate) struct Remote {
    pub(crate) memory: Memory<ManualClock>,
    pub(crate) published: Arc<Mutex<Vec<Edit>>>,
    pub(crate) is_gone: Arc<AtomicBool>,
    /// True if it lets wait whoever publishes, strikes or sets overrides. Once it is false, they go
    /// on when they are polled.
    pub(crate) is_slow: Arc<AtomicBool>,
    /// The place of a limit that it cannot settle.
    pub(crate) unsettled: Arc<Mutex<Option<usize>>>,
    /// What it was told of offences. Each call takes it a millisecond.
    pub(crate) strikes: Arc<Mutex<Vec<StrikeCall>>>,
}

impl Remote {
    fn answer(&self) -> Result<(), Error> {
        match self.is_gone.load(Ordering::Relaxed) {
            true => Err(Error::store("gone")),
            false => Ok(()),
        }
    }
}

impl Remote {
    /// The way there.
    async fn arrive(&self) {
        std::future::poll_fn(|_| match self.is_slow.load(Ordering::Relaxed) {
            true => std::task::Poll::Pending,
            false => std::task::Poll::Ready(()),
        })
        .await;
    }
}

type Limits = MemoryLimits<ManualClock>;

impl Store for Remote {
    type Limits = Limits;

    fn is_in_process(&self) -> bool {
        false
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<Limits, Error> {
        self.memory.open(limits)
    }

    fn reopen(&self, old: &Limits, limits: &[LimitSpec]) -> Result<Limits, Error> {
        self.memory.reopen(old, limits)
    }

    async fn decide(&self, limits: &Limits, spends: &mut [Spend]) -> Result<(), Error> {
        self.memory.decide(limits, spends).await
    }

    fn decide_now(&self, _: &Limits, _: &mut [Spend]) -> Option<Result<(), Error>> {
        None
    }

    async fn peek(&self, limits: &Limits, spend: &Spend) -> Result<Decision, Error> {
        self.memory.peek(limits, spend).await
    }

    async fn settle(&self, limits: &Limits, spend: &Spend, actual: u64) -> Result<Settled, Error> {
        if *self.unsettled.lock().unwrap() == Some(spend.limit) {
            return Err(Error::store("gone"));
        }
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
        _until: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.answer()?;
        self.arrive().await;
        self.memory.set_override(limits, limit, key, quota, None).await
    }

    fn now(&self) -> Timestamp {
        self.memory.now()
    }

    async fn publish(&self, edits: &[Edit]) -> Result<(), Error> {
        self.answer()?;
        self.arrive().await;
        self.published.lock().unwrap().extend_from_slice(edits);
        Ok(())
    }

    async fn hold(&self, _: &Limits, _: &mut [Spend], _: &mut Permits) -> Result<(), Error> {
        Err(Error::store("there are no permits"))
    }

    fn hold_now(&self, _: &Limits, _: &mut [Spend], _: &mut Permits) -> Option<Result<(), Error>> {
        None
    }

    async fn acquire(
        &self,
        _: &Limits,
        _: &Spend,
        _: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        Err(Error::store("there are no permits"))
    }

    async fn renew(&self, _: &Limits, _: PermitId, _: Duration) -> Result<bool, Error> {
        Ok(false)
    }

    async fn release(&self, _: &Limits, _: PermitId) -> Result<bool, Error> {
        Ok(false)
    }

    async fn strike(
        &self,
        _: &Limits,
        _: usize,
        _: &Key,
        _: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, Error> {
        self.strikes.lock().unwrap().push(call);
        self.answer()?;
        self.arrive().await;
        self.memory.clock().advance(Duration::from_millis(1));
        Ok(None)
    }

    async fn forgive(&self, _: &Limits, _: usize, _: &Key) -> Result<(), Error> {
        Ok(())
    }

    fn usage(&self, _: &Limits, _: usize) -> Option<Usage> {
        None
    }
}
