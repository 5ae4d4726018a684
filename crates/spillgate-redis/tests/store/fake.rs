//! Redis in memory that can be slow, away, or in several slots, and that counts.

use spillgate_testing::CheckLimit;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use spillgate::{Clock, Timestamp};
use spillgate_policy::{Gate, LimitCheck, Limits, Outcome, Policy};
use spillgate_redis::backend::{
    Alive, Announcement, Backend, BackendError, EditPage, Entry, Exchange, Fault, Model,
    PermitCall, PermitReply, Reply, SealedEdit, Swap, Swapped,
};
use spillgate_redis::{Name, RedisStore, Settings};
use tokio::time::Instant;

/// Clones are the same Redis, over the same path.
#[derive(Clone)]
pub(crate) struct Fake(Arc<FakeState>, Path);

/// True if the path is cut.
type Path = Arc<AtomicBool>;

struct FakeState {
    model: Model,
    clock: TokioClock,
    slots: u8,
    delay: Mutex<Duration>,
    answer_delay: Mutex<Duration>,
    is_down: AtomicBool,
    hangs: AtomicBool,
    is_overloaded: AtomicBool,
    is_scattered: AtomicBool,
    down_slot: Mutex<Option<u16>>,
    /// How far its clock has gone back.
    behind: Mutex<Duration>,
    runs: AtomicUsize,
    exchanges: AtomicUsize,
    permit_calls: AtomicUsize,
    announcements: AtomicUsize,
    /// Which of the next answers are lost.
    lost: Mutex<Range<usize>>,
    before_run: Mutex<Option<Hook>>,
}

type Hook = Box<dyn FnMut(&Model, &[Entry]) + Send>;

/// Time as tokio has it, which tests can stop and move.
#[derive(Clone, Copy)]
pub(crate) struct TokioClock(Instant);

const BEGINNING: Timestamp = Timestamp::from_secs(1_700_000_000);

/// How long a call to Redis that [hangs](Fake::hang) takes.
pub(crate) const TIME_OUT: Duration = Duration::from_millis(50);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        BEGINNING + self.0.elapsed()
    }
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self::with_slots(1)
    }

    pub(crate) fn with_slots(slots: u8) -> Self {
        let state = FakeState {
            model: Model::new(BEGINNING),
            clock: TokioClock(Instant::now()),
            slots,
            delay: Mutex::default(),
            answer_delay: Mutex::default(),
            is_down: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            is_overloaded: AtomicBool::new(false),
            is_scattered: AtomicBool::new(false),
            down_slot: Mutex::default(),
            behind: Mutex::default(),
            runs: AtomicUsize::new(0),
            exchanges: AtomicUsize::new(0),
            permit_calls: AtomicUsize::new(0),
            announcements: AtomicUsize::new(0),
            lost: Mutex::default(),
            before_run: Mutex::default(),
        };
        Self(Arc::new(state), Path::default())
    }

    /// The same Redis over a path of its own.
    pub(crate) fn path(&self) -> Self {
        Self(Arc::clone(&self.0), Path::default())
    }

    /// Cuts this path, or mends it.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.1.store(is_cut, Ordering::SeqCst);
    }

    pub(crate) fn model(&self) -> &Model {
        &self.0.model
    }

    /// The time, for others to go by.
    pub(crate) fn clock(&self) -> TokioClock {
        self.0.clock
    }

    /// A node with this policy.
    pub(crate) fn node(&self, policy: &str) -> Gate<RedisStore<Fake>> {
        self.node_with(policy, &Settings::default().nodes(2.try_into().unwrap()))
    }

    pub(crate) fn node_with(&self, policy: &str, settings: &Settings) -> Gate<RedisStore<Fake>> {
        let settings = settings.clone().clock(self.0.clock);
        let store = RedisStore::new(self.clone(), &settings).unwrap();
        Gate::with_store(Policy::from_toml(policy).unwrap(), store).unwrap()
    }

    /// How often it was asked so far.
    pub(crate) fn runs(&self) -> usize {
        self.0.runs.load(Ordering::SeqCst)
    }

    /// How often it was called about permits so far.
    pub(crate) fn permit_calls(&self) -> usize {
        self.0.permit_calls.load(Ordering::SeqCst)
    }

    /// How often nodes were announced so far.
    pub(crate) fn announcements(&self) -> usize {
        self.0.announcements.load(Ordering::SeqCst)
    }

    /// How often a state was exchanged so far.
    pub(crate) fn exchanges(&self) -> usize {
        self.0.exchanges.load(Ordering::SeqCst)
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Sets its clock back.
    pub(crate) fn set_back(&self, by: Duration) {
        *self.0.behind.lock().unwrap() = by;
    }

    /// No answer comes within the [time-out](TIME_OUT).
    pub(crate) fn hang(&self) {
        self.0.hangs.store(true, Ordering::SeqCst);
    }

    /// More is asked than it answers.
    pub(crate) fn set_overloaded(&self, is_overloaded: bool) {
        self.0.is_overloaded.store(is_overloaded, Ordering::SeqCst);
    }

    /// Its slot is on the way to another node.
    pub(crate) fn set_scattered(&self, is_scattered: bool) {
        self.0.is_scattered.store(is_scattered, Ordering::SeqCst);
    }

    pub(crate) fn set_slot_down(&self, slot: Option<u16>) {
        *self.0.down_slot.lock().unwrap() = slot;
    }

    /// Calls that arrive so late.
    pub(crate) fn set_delay(&self, delay: Duration) {
        *self.0.delay.lock().unwrap() = delay;
    }

    /// Answers that come so late to what has been done.
    pub(crate) fn set_answer_delay(&self, delay: Duration) {
        *self.0.answer_delay.lock().unwrap() = delay;
    }

    /// These of the next answers do not come within the [time-out](TIME_OUT): what was asked is done.
    pub(crate) fn lose_answers(&self, which: Range<usize>) {
        *self.0.lost.lock().unwrap() = which;
    }

    fn loses_answer(&self) -> bool {
        let mut lost = self.0.lost.lock().unwrap();
        let is_lost = lost.contains(&0);
        *lost = lost.start.saturating_sub(1)..lost.end.saturating_sub(1);
        is_lost
    }

    /// What others do between the calls of a node.
    pub(crate) fn before_run(&self, hook: impl FnMut(&Model, &[Entry]) + Send + 'static) {
        *self.0.before_run.lock().unwrap() = Some(Box::new(hook));
    }

    async fn travel(&self, name: Option<&Name>) -> Result<(), BackendError> {
        if self.0.hangs.load(Ordering::SeqCst) {
            return Err(late().await);
        }
        if self.0.is_overloaded.load(Ordering::SeqCst) {
            return Err(BackendError::new(Fault::Overloaded, "too many calls wait"));
        }
        let delay = *self.0.delay.lock().unwrap();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let down_slot = *self.0.down_slot.lock().unwrap();
        let is_slot_down = name.is_some_and(|name| down_slot == Some(self.slot(name)));
        if is_slot_down {
            // As a breaker tells that has opened since answers did not come.
            let down = "redis://test did not answer in 50 ms (down for 1.0 s)";
            return Err(BackendError::new(Fault::TimedOut, down));
        }
        if self.0.is_down.load(Ordering::SeqCst) || self.1.load(Ordering::SeqCst) {
            return Err(BackendError::new(Fault::Unreachable, "redis://test cannot be reached"));
        }
        self.0.model.set_now(self.0.clock.now() - *self.0.behind.lock().unwrap());
        Ok(())
    }

    /// Brings the answer to what was done.
    async fn answer<T>(&self, answer: Result<T, BackendError>) -> Result<T, BackendError> {
        if self.loses_answer() {
            return Err(late().await);
        }
        let delay = *self.0.answer_delay.lock().unwrap();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        answer
    }
}

impl Backend for Fake {
    async fn run(&self, entries: &[Entry]) -> Result<Reply, BackendError> {
        self.0.runs.fetch_add(1, Ordering::SeqCst);
        let slots: Vec<_> = entries.iter().map(|entry| self.slot(&entry.name)).collect();
        assert!(slots.iter().all(|slot| *slot == slots[0]), "asked over slots {slots:?}");
        self.travel(Some(&entries[0].name)).await?;
        if entries.len() > 1 && self.0.is_scattered.load(Ordering::SeqCst) {
            return Err(BackendError::new(Fault::Scattered, "slot 0 is being moved"));
        }
        if let Some(hook) = &mut *self.0.before_run.lock().unwrap() {
            hook(&self.0.model, entries);
        }
        self.answer(self.0.model.run_now(entries)).await
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool, BackendError> {
        self.0.exchanges.fetch_add(1, Ordering::SeqCst);
        self.travel(Some(&exchange.name)).await?;
        self.answer(Ok(self.0.model.exchange_now(exchange))).await
    }

    fn slot(&self, name: &Name) -> u16 {
        u16::from(name.as_bytes()[0] % self.0.slots)
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Alive, BackendError> {
        self.0.announcements.fetch_add(1, Ordering::SeqCst);
        self.travel(None).await?;
        self.0.model.announce(announcement).await
    }

    async fn forget(&self, name: Name) -> Result<(), BackendError> {
        self.travel(Some(&name)).await?;
        self.0.model.forget(name).await
    }

    async fn born(&self, name: Name) -> Result<Timestamp, BackendError> {
        self.travel(Some(&name)).await?;
        self.0.model.born(name).await
    }

    async fn deposit(
        &self,
        name: Name,
        kept: &[u8],
        lifetime: Duration,
    ) -> Result<(), BackendError> {
        self.travel(Some(&name)).await?;
        self.answer(self.0.model.deposit(name, kept, lifetime).await).await
    }

    async fn withdraw(&self, name: Name) -> Result<Option<Vec<u8>>, BackendError> {
        self.travel(Some(&name)).await?;
        self.answer(self.0.model.withdraw(name).await).await
    }

    async fn publish(&self, edits: &[SealedEdit]) -> Result<bool, BackendError> {
        self.travel(None).await?;
        self.answer(self.0.model.publish(edits).await).await
    }

    async fn edits_since(&self, version: u64) -> Result<EditPage, BackendError> {
        self.travel(None).await?;
        self.0.model.edits_since(version).await
    }

    async fn permits(&self, call: &PermitCall) -> Result<PermitReply, BackendError> {
        self.0.permit_calls.fetch_add(1, Ordering::SeqCst);
        self.travel(Some(&call.name)).await?;
        self.answer(Ok(self.0.model.permits_now(call))).await
    }

    async fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Result<Swapped, BackendError> {
        self.travel(Some(&name)).await?;
        self.answer(Ok(self.0.model.swap_strikes_now(name, swap))).await
    }
}

/// The error of a call, once it has waited for its answer.
async fn late() -> BackendError {
    tokio::time::sleep(TIME_OUT).await;
    BackendError::unanswered(Fault::TimedOut, "redis://test did not answer in time")
}

pub(crate) type Node = Gate<RedisStore<Fake>>;

/// How many of so many calls pass.
pub(crate) async fn passes(node: &Node, limit: &str, key: &str, calls: usize) -> usize {
    let mut passed = 0;
    for _ in 0..calls {
        passed += usize::from(node.check_limit(limit, &[key], 1).await.unwrap().is_allowed());
    }
    passed
}

/// Asks several limits about one caller.
pub(crate) async fn check_all(
    node: &Node,
    limits: &[&str],
    key: &str,
) -> Result<Outcome<'static>, spillgate_policy::Error> {
    let values = [key];
    let check = |limit| LimitCheck { limit, values: &values, cost: 1 };
    let checks: Vec<_> = limits.iter().copied().map(check).collect();
    node.decide(&Limits(&checks)).await
}

/// How much a caller still has.
pub(crate) async fn left(node: &Node, limit: &str, key: &str) -> u64 {
    node.peek_limit(limit, &[key], 0).await.unwrap().remaining()
}

/// Polls a future so many times and drops it: `None` if it was not done by then.
pub(crate) async fn polled<T>(times: usize, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (pin!(future), times);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}
