//! A gate over the store answers as recorded, and as the model.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spillgate::{AlgorithmKind, ManualClock, Timestamp};
use spillgate_policy::{Gate, Policy};
use spillgate_redis::backend::{
    Alive, Announcement, Backend, BackendError, EditPage, Entry, Exchange, Model, PermitCall,
    PermitReply, Reply, SealedEdit, Swap, Swapped,
};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{Name, RedisStore, Secret, Settings};
use spillgate_testing::conformance::{histories, recorded};
use spillgate_testing::moving::{
    Caller, Moving, MovingGate, Own, Quotas, moving, policy_under_load, under_load,
};
use spillgate_testing::{InGate, Limit, Subject};
use tokio::runtime::{Builder, Runtime};

use crate::common;

/// Redis whose clock the test moves.
trait Timed: Backend {
    fn set_now(&self, now: Timestamp);
}

impl Timed for Model {
    fn set_now(&self, now: Timestamp) {
        Model::set_now(self, now);
    }
}

/// A server that decides at any time. Limits are born by its own clock, so not there.
struct Real {
    server: Client,
    model: Model,
}

impl Timed for Real {
    fn set_now(&self, now: Timestamp) {
        self.model.set_now(now);
        // The test's time goes back by days, while that of the server that expires goes on.
        self.server.set_now(now, Duration::from_secs(1000));
    }
}

impl Backend for Real {
    async fn run(&self, entries: &[Entry]) -> Result<Reply, BackendError> {
        self.server.run(entries).await
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool, BackendError> {
        self.server.exchange(exchange).await
    }

    fn slot(&self, name: &Name) -> u16 {
        self.server.slot(name)
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Alive, BackendError> {
        self.server.announce(announcement).await
    }

    async fn forget(&self, name: Name) -> Result<(), BackendError> {
        self.server.forget(name).await
    }

    async fn born(&self, name: Name) -> Result<Timestamp, BackendError> {
        self.model.born(name).await
    }

    async fn deposit(
        &self,
        name: Name,
        kept: &[u8],
        lifetime: Duration,
    ) -> Result<(), BackendError> {
        self.server.deposit(name, kept, lifetime).await
    }

    async fn withdraw(&self, name: Name) -> Result<Option<Vec<u8>>, BackendError> {
        self.server.withdraw(name).await
    }

    async fn publish(&self, edits: &[SealedEdit]) -> Result<bool, BackendError> {
        self.server.publish(edits).await
    }

    async fn edits_since(&self, version: u64) -> Result<EditPage, BackendError> {
        self.server.edits_since(version).await
    }

    async fn permits(&self, call: &PermitCall) -> Result<PermitReply, BackendError> {
        self.server.permits(call).await
    }

    async fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Result<Swapped, BackendError> {
        self.server.swap_strikes(name, swap).await
    }
}

fn in_store<E: Timed>(
    redis: &Arc<E>,
    runtime: &Arc<Runtime>,
    wanted: &Limit,
) -> InGate<RedisStore<Arc<E>>> {
    let store = RedisStore::new(Arc::clone(redis), &settings()).unwrap();
    let redis = Arc::clone(redis);
    let set_now = move |now| redis.set_now(now);
    let mut subject = InGate::new(wanted, store, Arc::clone(runtime), set_now).unwrap();
    // The limit is born when it is first asked for.
    subject.peek("nobody", 0, wanted.born);
    subject
}

fn settings() -> Settings {
    static SUBJECTS: AtomicU64 = AtomicU64::new(0);
    // Each has names of its own, so that one Redis serves them all.
    let number = SUBJECTS.fetch_add(1, Ordering::Relaxed);
    let secret = Secret::new(format!("a secret of subject {number}")).unwrap();
    // What is remembered is not told to the nanosecond.
    Settings::default()
        .nodes(1.try_into().unwrap())
        .remembered(0)
        .secret(secret)
        .margin(Duration::from_secs(1000))
}

/// Gates over the store that answer by turns, and whose restarts find what Redis has kept.
struct Nodes<E: Timed> {
    gates: Vec<MovingGate<RedisStore<Arc<E>>>>,
    turn: usize,
    /// Which of them settles a call.
    open: HashMap<usize, usize>,
    /// False if nodes have different policies.
    are_alike: bool,
    /// Who has called last.
    callers: HashMap<&'static str, Caller>,
    /// The overrides that were set last.
    own: HashMap<&'static str, Own>,
    /// When overrides end.
    ends: BTreeSet<Timestamp>,
}

const NODES: usize = 3;

impl<E: Timed> Nodes<E> {
    fn new(redis: &Arc<E>, runtime: &Arc<Runtime>, kind: AlgorithmKind, quotas: &Quotas) -> Self {
        let clock = Arc::new(ManualClock::default());
        let settings = settings().clock(Arc::clone(&clock));
        let gate = |_| {
            let store = RedisStore::new(Arc::clone(redis), &settings).unwrap();
            let settings = settings.clone();
            let restart = move |old: &Gate<RedisStore<Arc<E>>>, policy: Policy, _| {
                let redis = Arc::clone(old.store().backend());
                Gate::with_store(policy, RedisStore::new(redis, &settings).unwrap()).unwrap()
            };
            let (redis, clock) = (Arc::clone(redis), Arc::clone(&clock));
            let set_now = move |now| {
                clock.set(now);
                redis.set_now(now);
            };
            MovingGate::new(kind, quotas, store, Arc::clone(runtime), set_now, restart).unwrap()
        };
        Self {
            gates: (0..NODES).map(gate).collect(),
            turn: 0,
            open: HashMap::new(),
            callers: HashMap::new(),
            are_alike: true,
            own: HashMap::new(),
            ends: BTreeSet::new(),
        }
    }

    fn next(&mut self, now: Timestamp) -> &mut MovingGate<RedisStore<Arc<E>>> {
        self.end_overrides(now);
        self.turn += 1;
        &mut self.gates[self.turn % NODES]
    }
}

impl<E: Timed> Nodes<E> {
    /// A quota reaches callers when they come: all come now as they came last, for too much.
    fn come(&mut self, now: Timestamp) {
        for caller in self.callers.clone().into_values() {
            let (node, caller) = match self.are_alike {
                true => (0, caller),
                false => (node_of(caller.tier), Caller { tier: None, ..caller }),
            };
            assert!(!self.gates[node].check(caller, 1_000_000, now));
        }
    }

    /// Ends overrides when they end, as a server does, but more exactly.
    fn end_overrides(&mut self, now: Timestamp) {
        while let Some(end) = self.ends.first().copied().filter(|end| *end <= now) {
            self.ends.remove(&end);
            self.gates[0].expire_overrides(end);
            self.come(end);
        }
    }
}

impl<E: Timed> Moving for Nodes<E> {
    fn check(&mut self, caller: Caller, cost: u64, now: Timestamp) -> bool {
        self.end_overrides(now);
        self.callers.insert(caller.key, caller);
        self.next(now).check(caller, cost, now)
    }

    fn retry_after(&mut self, caller: Caller, cost: u64, now: Timestamp) -> Option<Duration> {
        self.next(now).retry_after(caller, cost, now)
    }

    fn reserve(&mut self, caller: Caller, cost: u64, number: usize, now: Timestamp) -> bool {
        self.end_overrides(now);
        self.callers.insert(caller.key, caller);
        let is_admitted = self.next(now).reserve(caller, cost, number, now);
        self.open.insert(number, self.turn % NODES);
        is_admitted
    }

    fn settle(&mut self, number: usize, actual: u64, now: Timestamp) {
        if let Some(node) = self.open.remove(&number) {
            self.end_overrides(now);
            self.gates[node].settle(number, actual, now);
        }
    }

    fn debit(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        self.end_overrides(now);
        self.callers.insert(key, Caller { key, tier: None });
        self.next(now).debit(key, amount, now);
    }

    fn refund(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        self.end_overrides(now);
        self.callers.insert(key, Caller { key, tier: None });
        self.next(now).refund(key, amount, now);
    }

    fn reset(&mut self, key: &'static str, now: Timestamp) {
        self.end_overrides(now);
        self.callers.insert(key, Caller { key, tier: None });
        self.next(now).reset(key, now);
    }

    fn set_override(&mut self, key: &'static str, own: Option<Own>, now: Timestamp) {
        self.end_overrides(now);
        let known = match own {
            Some(own) => self.own.insert(key, own),
            None => self.own.remove(key),
        };
        // To remove one that nobody has is a call like any other, and not one to be judged.
        let has_one = known.is_some_and(|own| own.until.is_none_or(|until| until > now));
        if own.is_none() && !has_one {
            return;
        }
        self.callers.insert(key, Caller { key, tier: None });
        self.ends.extend(own.and_then(|own| own.until));
        // That the others learn of the edit is not what this is about.
        self.gates[0].set_override(key, own, now);
    }

    fn reload(&mut self, quotas: &Quotas, now: Timestamp) {
        self.end_overrides(now);
        self.gates.iter_mut().for_each(|gate| gate.reload(quotas, now));
        self.come(now);
    }

    fn restart(&mut self, now: Timestamp) {
        self.open.clear();
        // The first knows when overrides end.
        self.gates[1..].iter_mut().for_each(|gate| gate.restart(now));
    }

    fn remaining(&mut self, key: &'static str, now: Timestamp) -> u64 {
        self.next(now).remaining(key, now)
    }
}

fn runtime() -> Arc<Runtime> {
    Arc::new(Builder::new_current_thread().enable_all().build().unwrap())
}

#[test]
fn a_gate_over_the_store_answers_as_recorded() {
    let (model, runtime) = (Arc::new(Model::default()), runtime());
    for kind in AlgorithmKind::ALL {
        recorded(kind, |wanted| in_store(&model, &runtime, wanted));
    }
}

#[test]
fn a_gate_over_the_store_answers_as_the_model() {
    let runtime = runtime();
    for kind in AlgorithmKind::ALL {
        let model = |wanted: &Limit| Arc::new(Model::new(wanted.born));
        histories(kind, 40, |wanted| in_store(&model(wanted), &runtime, wanted));
    }
}

#[test]
fn what_moves_over_the_store_is_never_too_much_never_lost_and_never_a_lie() {
    let runtime = runtime();
    for kind in AlgorithmKind::ALL {
        moving(kind, 100, |kind, quotas, start| {
            Nodes::new(&Arc::new(Model::new(start)), &runtime, kind, quotas)
        });
    }
}

/// Nodes with different policies: what would be the quotas of tiers are those of nodes.
struct Disagreeing<E: Timed>(Nodes<E>);

impl<E: Timed> Disagreeing<E> {
    fn new(redis: &Arc<E>, runtime: &Arc<Runtime>, kind: AlgorithmKind, quotas: &Quotas) -> Self {
        let mut nodes = Nodes::new(redis, runtime, kind, &quotas_of_node(quotas, 0));
        for (node, gate) in nodes.gates.iter_mut().enumerate() {
            gate.reload(&quotas_of_node(quotas, node), Timestamp::ZERO);
        }
        nodes.are_alike = false;
        Self(nodes)
    }

    fn node(&mut self, caller: Caller, now: Timestamp) -> &mut MovingGate<RedisStore<Arc<E>>> {
        self.0.end_overrides(now);
        self.0.callers.insert(caller.key, caller);
        &mut self.0.gates[node_of(caller.tier)]
    }
}

const TIERS: [&str; NODES - 1] = ["gold", "silver"];

fn quotas_of_node(quotas: &Quotas, node: usize) -> Quotas {
    let tier = node.checked_sub(1).map(|index| TIERS[index]);
    Quotas { base: quotas.of(tier), tiers: Vec::new() }
}

fn node_of(tier: Option<&str>) -> usize {
    TIERS.iter().position(|known| tier == Some(known)).map_or(0, |index| index + 1)
}

impl<E: Timed> Moving for Disagreeing<E> {
    fn check(&mut self, caller: Caller, cost: u64, now: Timestamp) -> bool {
        self.node(caller, now).check(Caller { tier: None, ..caller }, cost, now)
    }

    fn retry_after(&mut self, caller: Caller, cost: u64, now: Timestamp) -> Option<Duration> {
        self.node(caller, now).retry_after(Caller { tier: None, ..caller }, cost, now)
    }

    fn reserve(&mut self, caller: Caller, cost: u64, number: usize, now: Timestamp) -> bool {
        self.0.open.insert(number, node_of(caller.tier));
        self.node(caller, now).reserve(Caller { tier: None, ..caller }, cost, number, now)
    }

    fn settle(&mut self, number: usize, actual: u64, now: Timestamp) {
        self.0.settle(number, actual, now);
    }

    fn debit(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        self.node(Caller { key, tier: None }, now).debit(key, amount, now);
    }

    fn refund(&mut self, key: &'static str, amount: u64, now: Timestamp) {
        self.node(Caller { key, tier: None }, now).refund(key, amount, now);
    }

    fn reset(&mut self, key: &'static str, now: Timestamp) {
        self.node(Caller { key, tier: None }, now).reset(key, now);
    }

    fn set_override(&mut self, key: &'static str, own: Option<Own>, now: Timestamp) {
        self.0.set_override(key, own, now);
    }

    fn reload(&mut self, quotas: &Quotas, now: Timestamp) {
        self.0.end_overrides(now);
        for (node, gate) in self.0.gates.iter_mut().enumerate() {
            gate.reload(&quotas_of_node(quotas, node), now);
        }
        self.0.come(now);
    }

    fn restart(&mut self, now: Timestamp) {
        self.0.restart(now);
    }

    fn remaining(&mut self, key: &'static str, now: Timestamp) -> u64 {
        let caller = self.0.callers.get(key).copied().unwrap_or(Caller { key, tier: None });
        self.node(caller, now).remaining(key, now)
    }
}

#[test]
fn nodes_that_disagree_about_a_quota_keep_what_is_promised() {
    use AlgorithmKind::{IntervalBucket, LeakyBucket, LeakyShaper, TokenBucket};
    let runtime = runtime();
    // A settlement is charged under the quota of whichever node makes it, which the checker does not
    // know: debts of windows last as long as those of that quota.
    for kind in [TokenBucket, LeakyBucket, LeakyShaper, IntervalBucket] {
        moving(kind, 100, |kind, quotas, start| {
            Disagreeing::new(&Arc::new(Model::new(start)), &runtime, kind, quotas)
        });
    }
}

#[test]
fn a_gate_over_a_real_server_answers_as_recorded_and_as_the_model() {
    for redis in [common::Server::redis(), common::Server::valkey()] {
        let runtime = runtime();
        let options = Options::new(&redis.url()).unwrap().command_time_out(Duration::from_secs(10));
        let server = runtime.block_on(Client::connect(options)).unwrap();
        let real = Arc::new(Real { server, model: Model::default() });
        for kind in AlgorithmKind::ALL {
            let subject = |wanted: &Limit| in_store(&real, &runtime, wanted);
            recorded(kind, subject);
            histories(kind, 5, subject);
            moving(kind, 20, |kind, quotas, _| Nodes::new(&real, &runtime, kind, quotas));
        }
    }
}

#[test]
fn what_moves_over_a_real_server_under_load_spends_every_call_once() {
    let redis = common::Server::redis();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options = Options::new(&redis.url()).unwrap().command_time_out(Duration::from_secs(10));
    let server = Arc::new(runtime.block_on(Client::connect(options)).unwrap());
    for kind in AlgorithmKind::ALL {
        let _entered = runtime.enter();
        let store = RedisStore::new(Arc::clone(&server), &settings()).unwrap();
        let gate = Gate::with_store(policy_under_load(kind, 50), store).unwrap();
        under_load(kind, &gate, &runtime, 300, |gate| {
            gate.replace(policy_under_load(kind, 51)).unwrap();
        });
    }
}
