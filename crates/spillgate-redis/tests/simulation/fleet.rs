use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate_policy::{Gate, LimitCheck, Limits, Outcome, Policy};
use spillgate_redis::{RedisStore, Settings};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::simulation::link::Link;
use crate::simulation::plan::{Flaw, Plan, name};
use crate::simulation::random::{Random, mix};
use crate::simulation::world::{History, MARGIN, NodeClock, SHARDS, World};

/// What a simulation has come to.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) admitted: Vec<Admission>,
    pub(crate) denied: u64,
    /// Calls that were not answered.
    pub(crate) failed: u64,
    pub(crate) history: History,
}

/// A cost that was let through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    pub(crate) limit: usize,
    pub(crate) user: usize,
    /// In true time.
    pub(crate) at: Duration,
    pub(crate) cost: u64,
}

/// What all nodes' clients have been answered.
#[derive(Debug, Default)]
struct Answers {
    admitted: Vec<Admission>,
    denied: u64,
    failed: u64,
}

/// Lets a plan happen. Time stands still while anybody has something to do, so it takes no
/// longer than that.
pub(crate) fn simulate(plan: &Plan) -> CallResult {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(plan))
}

async fn run(plan: &Plan) -> CallResult {
    let world = Arc::new(World::new(plan.seed));
    let answers = Arc::new(Mutex::new(Answers::default()));
    let end = Instant::now() + plan.lasts;
    let start = || SimNode::start(plan, &world, &answers);
    let mut nodes: Vec<_> = (0..plan.nodes).map(|_| start()).collect();
    for trouble in troubles(plan, &world) {
        sleep_until(trouble.at).await;
        match trouble.kind {
            Kind::Crash(node) => nodes[node].crash(),
            Kind::Restart(node) => nodes[node] = start(),
            Kind::FailOver(shard, lag) => world.fail_over(shard, lag),
            Kind::Change(node) => nodes[node].change(plan),
            Kind::Stall(shard, lasts) => world.stall(shard, lasts),
            Kind::Partition(node, lasts) => {
                let shard = world.draw(|random| random.below(SHARDS.into())) as u8;
                nodes[node].link.cut(shard, lasts);
            }
        }
    }
    sleep_until(end).await;
    for node in &mut nodes {
        node.clients.abort_all();
        node.gate.store().shutdown().await;
    }
    let Answers { admitted, denied, failed } = std::mem::take(&mut *answers.lock().unwrap());
    CallResult { admitted, denied, failed, history: world.history() }
}

struct Trouble {
    at: Instant,
    kind: Kind,
}

enum Kind {
    Crash(usize),
    Restart(usize),
    Partition(usize, Duration),
    FailOver(u8, Duration),
    Change(usize),
    Stall(u8, Duration),
}

/// What breaks, and when, in order.
fn troubles(plan: &Plan, world: &World) -> Vec<Trouble> {
    let now = Instant::now();
    world.draw(|random| {
        let mut troubles = Vec::new();
        let mut add = |at, kind| troubles.push(Trouble { at, kind });
        for _ in 0..plan.crashes {
            let (node, at) = (plan.any_node(random), now + plan.any_time(random));
            add(at, Kind::Crash(node));
            add(at + random.millis(0, 300), Kind::Restart(node));
        }
        for _ in 0..plan.partitions {
            let (node, at) = (plan.any_node(random), now + plan.any_time(random));
            add(at, Kind::Partition(node, random.millis(20, 600)));
        }
        for _ in 0..plan.failovers {
            let (shard, at) = (random.below(SHARDS.into()) as u8, now + plan.any_time(random));
            add(at, Kind::FailOver(shard, plan.lag));
        }
        for _ in 0..plan.stalls {
            let (shard, at) = (random.below(SHARDS.into()) as u8, now + plan.any_time(random));
            let lasts = random.millis(1, plan.longest_stall.as_millis() as u64);
            add(at, Kind::Stall(shard, lasts));
        }
        for node in 0..plan.nodes as usize * usize::from(plan.change.is_some()) {
            add(now + plan.any_time(random), Kind::Change(node));
        }
        troubles.sort_by_key(|trouble| trouble.at);
        troubles
    })
}

impl Plan {
    fn any_node(&self, random: &mut Random) -> usize {
        random.below(self.nodes.into()) as usize
    }

    fn any_time(&self, random: &mut Random) -> Duration {
        random.millis(0, self.lasts.as_millis() as u64)
    }
}

struct SimNode {
    gate: Arc<Gate<RedisStore<Link>>>,
    link: Link,
    clients: JoinSet<()>,
}

impl SimNode {
    fn start(plan: &Plan, world: &Arc<World>, answers: &Arc<Mutex<Answers>>) -> Self {
        let link = Link::new(world, plan.network, plan.flaw);
        let drift = plan.drift_ppm.unsigned_abs();
        let pace = world.draw(|random| 1_000_000 - drift + random.below(2 * drift + 1));
        let pace = if plan.flaw == Some(Flaw::SlowClocks) { pace / 10 } else { pace };
        let clock = NodeClock { began: Instant::now(), pace };
        let remembered = if plan.flaw == Some(Flaw::NoMemory) { 0 } else { 64 };
        let mut settings = Settings::default().clock(clock).margin(MARGIN).remembered(remembered);
        if let Some(nodes) = NonZeroU32::new(plan.nodes).filter(|_| plan.is_count_configured) {
            settings = settings.nodes(nodes);
        }
        let store = RedisStore::new(link.clone(), &settings).unwrap();
        let policy = Policy::from_toml(&plan.policy()).unwrap();
        let gate = Arc::new(Gate::with_store(policy, store).unwrap());
        let mut clients = JoinSet::new();
        for _ in 0..plan.clients {
            let (gate, world) = (Arc::clone(&gate), Arc::clone(world));
            let client =
                SimClient { plan: plan.clone(), gate, world, answers: Arc::clone(answers) };
            clients.spawn(client.call_again_and_again());
        }
        Self { gate, link, clients }
    }

    /// Goes on by the quota that the plan has for the first limit from now on.
    fn change(&self, plan: &Plan) {
        let limits = plan.change.iter().chain(&plan.limits[1..]).copied().collect();
        let changed = Plan { limits, ..plan.clone() };
        self.gate.replace(Policy::from_toml(&changed.policy()).unwrap()).unwrap();
    }

    /// Ends at once, with all that it held.
    fn crash(&mut self) {
        self.link.die();
        self.clients.abort_all();
    }
}

/// Somebody who calls a node.
struct SimClient {
    plan: Plan,
    gate: Arc<Gate<RedisStore<Link>>>,
    world: Arc<World>,
    answers: Arc<Mutex<Answers>>,
}

/// What is called for: which limits, for whom, and what each costs.
struct Call {
    limits: Vec<usize>,
    user: usize,
    cost: u64,
    /// What it costs in the end, if that is another amount.
    actual: Option<u64>,
    is_cancelled: bool,
}

const USERS: [&str; 2] = ["alice", "bob"];

impl SimClient {
    async fn call_again_and_again(self) {
        loop {
            sleep(self.pause()).await;
            for _ in 0..self.volley() {
                let call = self.next();
                self.call(&call).await;
            }
        }
    }

    /// How many calls follow one another.
    fn volley(&self) -> u64 {
        let (rhythm, now) = (self.plan.rhythm, self.world.elapsed().as_millis() as u64);
        let is_modest = rhythm > 0 && !now.is_multiple_of(rhythm);
        let most = if is_modest { 1 } else { self.plan.volley };
        self.world.draw(|random| random.between(1, most))
    }

    /// How long until the next call. Those who keep time call in between at some times, and
    /// are all quiet at others.
    fn pause(&self) -> Duration {
        let pause = self.world.draw(|random| random.millis(1, self.plan.pause));
        let (rhythm, now) = (self.plan.rhythm, self.world.elapsed().as_millis() as u64);
        if rhythm == 0 {
            return pause;
        }
        let is_quiet = mix(self.plan.seed ^ (now / rhythm)).is_multiple_of(2);
        let until_beat = Duration::from_millis(rhythm - now % rhythm);
        if is_quiet { until_beat } else { pause.min(until_beat) }
    }

    fn next(&self) -> Call {
        self.world.draw(|random| {
            let mut limits: Vec<_> = (0..self.plan.limits.len()).collect();
            limits.retain(|_| random.percent(60));
            if limits.is_empty() {
                limits.push(random.below(self.plan.limits.len() as u64) as usize);
            }
            let cost = random.between(1, self.plan.most_cost);
            let is_settled = random.percent(self.plan.settled);
            let actual = is_settled.then(|| random.below(2 * cost + 1));
            let is_cancelled = random.percent(self.plan.cancelled);
            let user = random.below(self.plan.users) as usize;
            Call { limits, user, cost, actual, is_cancelled }
        })
    }

    async fn call(&self, call: &Call) {
        let values = [USERS[call.user]];
        let check =
            |limit: &usize| LimitCheck { limit: name(*limit), values: &values, cost: call.cost };
        let checks: Vec<_> = call.limits.iter().map(check).collect();
        let called = self.world.elapsed();
        let outcome = self.gate.decide(&Limits(&checks)).await;
        let is_allowed = outcome.as_ref().is_ok_and(Outcome::is_allowed);
        match outcome {
            Err(_) => self.answers.lock().unwrap().failed += 1,
            Ok(outcome) if call.is_cancelled => self.gate.cancel(outcome),
            Ok(outcome) if outcome.is_allowed() => self.admit(call, called, &outcome),
            Ok(_) => self.answers.lock().unwrap().denied += 1,
        }
        self.world.trace(u64::from(is_allowed));
        if let Some(actual) = call.actual.filter(|_| is_allowed && !call.is_cancelled) {
            let limit = name(call.limits[0]);
            // What is not answered may have happened.
            let _ = self.gate.settle_limit(limit, &values, call.cost, actual).await;
        }
    }

    fn admit(&self, call: &Call, called: Duration, outcome: &Outcome<'_>) {
        let mut answers = self.answers.lock().unwrap();
        assert_eq!(outcome.limits().count(), call.limits.len(), "every limit has decided");
        for (limit, state) in call.limits.iter().zip(outcome.limits()) {
            let at = self.world.true_time(state.decision().now(), called);
            let admission = Admission { limit: *limit, user: call.user, at, cost: call.cost };
            answers.admitted.push(admission);
        }
    }
}
