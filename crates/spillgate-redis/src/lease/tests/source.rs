use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use spillgate::algorithm::{Algorithm, Word};
use spillgate::{AlgorithmKind, KeyedState, Timestamp};
use tokio::time::{Instant, sleep};

use crate::backend::{BackendError, Exchange, Fault, Found, Model, Op, Result};
use crate::clock_sample::ClockSample;
use crate::effective_quota::EffectiveQuota;
use crate::lease::{LeaseId, LeaseSource, Leases, Named, Spent, Taken};
use crate::{Name, Terms};

/// A node that has no store, only leases, and Redis a millisecond away.
#[derive(Debug)]
pub(super) struct TestSource {
    pub(super) model: Model,
    pub(super) nodes: AtomicU32,
    pub(super) is_down: AtomicBool,
    /// True if calls are made and not answered.
    pub(super) is_mute: AtomicBool,
    pub(super) calls: AtomicU64,
    began: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TestCaller(Name);

/// How long a call is under way, there and back.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(1);

impl Named for TestCaller {
    fn name(&self) -> Name {
        self.0
    }
}

impl TestSource {
    /// Redis's clock is far from the node's.
    fn redis_now(&self) -> Timestamp {
        Timestamp::from_secs(1_700_000_000) + self.began.elapsed()
    }

    async fn call<T>(&self, run: impl FnOnce(&Model) -> T) -> Result<T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        sleep(ROUND_TRIP / 2).await;
        if self.is_down.load(Ordering::Relaxed) {
            return Err(BackendError::new(Fault::Unreachable, "it is down"));
        }
        self.model.set_now(self.redis_now());
        let answer = run(&self.model);
        sleep(ROUND_TRIP / 2).await;
        if self.is_mute.load(Ordering::Relaxed) {
            return Err(BackendError::unanswered(Fault::TimedOut, "it is mute"));
        }
        Ok(answer)
    }

    /// Spends without a lease.
    async fn spend(&self, name: Name, effective: &EffectiveQuota, cost: u64) -> Result<bool> {
        let op = Op::Spend { cost, is_shadow: false };
        let entry = effective.entry(name, Word::from_bits(0), op);
        let reply = self.call(|model| model.run_now(&[entry])).await??;
        Ok(matches!(reply.answers[0], Found::Passed(_)))
    }
}

impl LeaseSource for TestSource {
    type Caller = TestCaller;

    fn local(&self) -> Timestamp {
        Timestamp::from_secs(1000) + self.began.elapsed()
    }

    fn nodes(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.nodes.load(Ordering::Relaxed))
    }

    fn margin(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn take(
        self: &Arc<Self>,
        caller: &TestCaller,
        wanted: &EffectiveQuota,
        least: u64,
        most: u64,
    ) -> Result<Taken> {
        let sent = self.local();
        let entry = wanted.entry(caller.0, Word::from_bits(0), Op::Take { least, most });
        let reply = self.call(|model| model.run_now(&[entry])).await??;
        let sample = ClockSample { sent, received: self.local(), now: reply.now };
        Ok(match reply.answers[0].clone() {
            Found::Passed(word) => {
                Taken { sample, effective: *wanted, word, is_granted: true, is_moving: false }
            }
            Found::Denied(word) => {
                Taken { sample, effective: *wanted, word, is_granted: false, is_moving: false }
            }
            Found::Other(state) => {
                let effective = EffectiveQuota::of(state.terms).unwrap();
                Taken { sample, effective, word: state.word, is_granted: false, is_moving: false }
            }
            Found::Gone => panic!("no override is taken away here"),
        })
    }

    async fn look(
        &self,
        caller: &TestCaller,
        wanted: &EffectiveQuota,
    ) -> Result<Option<(Word, Timestamp)>> {
        let entry = wanted.entry(caller.0, Word::from_bits(0), Op::Look);
        let reply = self.call(|model| model.run_now(&[entry])).await??;
        Ok(match reply.answers[0] {
            Found::Passed(word) => Some((word, reply.now)),
            _ => None,
        })
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool> {
        self.call(|model| model.exchange_now(exchange)).await
    }
}

/// Leases of buckets of one quota.
pub(super) struct TestNode {
    pub(super) source: Arc<TestSource>,
    pub(super) leases: Leases<TestSource>,
    pub(super) effective: EffectiveQuota,
}

impl TestNode {
    pub(super) fn new(quota: &str) -> Self {
        Self::with_room(quota, 10_000)
    }

    pub(super) fn with_room(quota: &str, room: usize) -> Self {
        let source = Arc::new(TestSource {
            model: Model::default(),
            nodes: AtomicU32::new(1),
            is_down: AtomicBool::new(false),
            is_mute: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            began: Instant::now(),
        });
        let leases = Leases::new(Arc::clone(&source), KeyedState::new(), room);
        let kind = AlgorithmKind::TokenBucket;
        let terms = Terms::new(kind, quota.parse().unwrap());
        Self { source, leases, effective: EffectiveQuota::of(terms).unwrap() }
    }

    pub(super) fn id(&self, caller: u8) -> LeaseId {
        self.leases.id(1, &[caller])
    }

    pub(super) fn name(caller: u8) -> Name {
        Name::from_bytes([caller; 16])
    }

    /// What a store does under a leased limit. True if the call is allowed.
    pub(super) async fn call(&self, caller: u8, cost: u64) -> bool {
        match self.try_call(caller, cost).await.unwrap() {
            Some(is_allowed) => is_allowed,
            None => self.source.spend(Self::name(caller), &self.effective, cost).await.unwrap(),
        }
    }

    /// `None` if the caller is not leased.
    pub(super) async fn try_call(&self, caller: u8, cost: u64) -> Result<Option<bool>> {
        let id = self.id(caller);
        match self.leases.spend(id, &self.effective, cost, self.source.local()) {
            Spent::Allowed(_) => return Ok(Some(true)),
            Spent::Denied(_) => return Ok(Some(false)),
            Spent::Empty => {}
        }
        let caller = TestCaller(Self::name(caller));
        let decision = self.leases.decide(id, &self.effective, &caller, cost).await?;
        Ok(decision.map(|decision| decision.is_allowed()))
    }

    /// How many calls were sent to Redis.
    pub(super) fn calls(&self) -> u64 {
        self.source.calls.load(Ordering::Relaxed)
    }

    /// What Redis has left for a caller.
    pub(super) fn stored(&self, caller: u8) -> u64 {
        let algorithm = self.effective.algorithm;
        let word = self.source.model.state(&Self::name(caller)).map(|state| state.word);
        algorithm.remaining(word.unwrap_or(Word::from_bits(0)), self.source.redis_now())
    }
}
