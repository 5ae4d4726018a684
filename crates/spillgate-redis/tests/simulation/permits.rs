//! Permits that nodes share over a network in which everything goes wrong: all nodes together never
//! hand out more than the limit, but for those whose holders outlived their slice, which are counted.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate_policy::Key;
use spillgate_policy::store::{HoldSpec, LimitSpec, Outage, Permits, Spend, Store};
use spillgate_redis::{RedisLimits, RedisStore, Settings};
use spillgate_testing::seeds;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::simulation::link::Link;
use crate::simulation::plan::{Flaw, Network};
use crate::simulation::random::Random;
use crate::simulation::world::{NodeClock, World};

#[derive(Clone, Copy, Debug)]
struct PermitPlan {
    seed: u64,
    nodes: u32,
    limit: u32,
    ttl: Duration,
    network: Network,
    /// In milliseconds, how long holds last at most.
    longest: u64,
    crashes: u64,
    partitions: u64,
    /// What a node's clock counts while a million nanoseconds pass, at least and at most.
    paces: (u64, u64),
    flaw: Option<Flaw>,
}

const LASTS: Duration = Duration::from_secs(8);

/// How late a node may notice that its slice has expired: it waits for answers meanwhile.
const NOTICED: Duration = Duration::from_millis(400);

impl PermitPlan {
    /// Messages are late and lost, but slices are renewed in time.
    fn steady(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            seed,
            nodes: random.between(1, 4) as u32,
            limit: random.one_of(&[1, 2, 5, 20, 100]),
            ttl: Duration::from_secs(random.between(3, 10)),
            network: Network { fastest: 0, slowest: random.between(1, 10), lost: 2, late: 5 },
            longest: 400,
            crashes: random.between(0, 2),
            partitions: 0,
            paces: (999_100, 1_000_900),
            flaw: None,
        }
    }

    /// Nodes are cut off for longer than slices last, and so long do holds.
    fn troubled(seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(77));
        Self {
            ttl: Duration::from_millis(random.between(500, 2000)),
            network: Network { fastest: 0, slowest: random.between(1, 20), lost: 5, late: 10 },
            longest: 3000,
            partitions: random.between(1, 6),
            ..Self::steady(seed)
        }
    }
}

/// What is true whoever knows it.
#[derive(Default)]
struct Truth {
    /// By node, how many permits are in flight.
    running: Mutex<Vec<u32>>,
    granted: AtomicU64,
    excess: Mutex<Option<String>>,
}

struct PermitNode {
    place: usize,
    store: RedisStore<Link>,
    limits: RedisLimits,
    truth: Arc<Truth>,
    /// What had expired when last nothing was in flight.
    excused: AtomicU64,
}

impl PermitNode {
    fn new(
        plan: &PermitPlan,
        world: &Arc<World>,
        link: &Link,
        place: usize,
        truth: &Arc<Truth>,
    ) -> Self {
        let pace = world.draw(|random| random.between(plan.paces.0, plan.paces.1));
        let clock = NodeClock { began: Instant::now(), pace };
        let settings = Settings::default().nodes(plan.nodes.try_into().unwrap()).clock(clock);
        let store = RedisStore::new(link.clone(), &settings).unwrap();
        let mut spec = LimitSpec::new("l", format!("burst {}", plan.limit).parse().unwrap());
        spec = spec.holding(HoldSpec::new(plan.ttl));
        spec.outage = Outage::Closed;
        let limits = store.open(&[spec]).unwrap();
        let truth = Arc::clone(truth);
        Self { place, store, limits, truth, excused: AtomicU64::new(0) }
    }

    async fn hold(&self, count: u32) -> Permits {
        let spend = Spend::new(0, Key::from_bytes(b"ann"), count.into());
        let (mut spends, mut permits) = ([spend], Permits::new());
        // An error is a denial here.
        let _ = self.store.hold(&self.limits, &mut spends, &mut permits).await;
        permits
    }

    fn expired(&self) -> u64 {
        self.store.usage(&self.limits, 0).unwrap().expired
    }

    /// Notes that permits were granted or released. Returns how many are in flight by node.
    fn note(&self, count: i64) -> Vec<u32> {
        let mut running = self.truth.running.lock().unwrap();
        running[self.place] = running[self.place].checked_add_signed(count as i32).unwrap();
        if running[self.place] == 0 {
            self.excused.store(self.expired(), Ordering::Relaxed);
        }
        running.clone()
    }
}

type AllNodes = Arc<Mutex<Vec<Arc<PermitNode>>>>;

/// Holds and releases for as long as the simulation lasts.
async fn use_permits(node: Arc<PermitNode>, all: AllNodes, plan: PermitPlan, world: Arc<World>) {
    while world.elapsed() < LASTS {
        let (count, lasts, pause) = world.draw(|random| {
            let longest = if random.percent(90) { plan.longest.min(60) } else { plan.longest };
            (random.between(1, 3) as u32, random.millis(0, longest), random.millis(0, 30))
        });
        sleep(pause).await;
        let permits = node.hold(count.min(plan.limit)).await;
        if permits.is_empty() {
            continue;
        }
        let count = i64::from(permits[0].count());
        node.truth.granted.fetch_add(1, Ordering::Relaxed);
        let running = node.note(count);
        world.trace(count as u64);
        let total: u32 = running.iter().sum();
        if total > plan.limit {
            let nodes = all.lock().unwrap().clone();
            let bases: Vec<_> =
                nodes.iter().map(|node| node.excused.load(Ordering::Relaxed)).collect();
            tokio::spawn(judge(nodes, bases, running, plan.limit, world.elapsed()));
        }
        sleep(lasts).await;
        node.note(-count);
        drop(permits);
    }
}

/// More than the limit may run only if so many have been found to have expired.
async fn judge(
    nodes: Vec<Arc<PermitNode>>,
    bases: Vec<u64>,
    running: Vec<u32>,
    limit: u32,
    at: Duration,
) {
    sleep(NOTICED).await;
    let excused = nodes.iter().zip(&bases).zip(&running).map(|((node, base), running)| {
        u64::from(*running).min(node.expired().saturating_sub(*base))
    });
    let (excused, total): (u64, u32) = (excused.sum(), running.iter().sum());
    if u64::from(total - limit) > excused {
        let why = format!("at {at:?} {running:?} of {limit}, of which {excused} had expired");
        nodes[0].truth.excess.lock().unwrap().get_or_insert(why);
    }
}

/// What a run came to: what was granted, and what expired.
fn simulate(plan: &PermitPlan) -> Result<(u64, u64, u64), String> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(*plan))
}

async fn run(plan: PermitPlan) -> Result<(u64, u64, u64), String> {
    let world = Arc::new(World::new(plan.seed));
    let truth = Arc::new(Truth::default());
    truth.running.lock().unwrap().resize(plan.nodes as usize, 0);
    let all: AllNodes = Arc::default();
    let (mut links, mut clients) = (Vec::new(), Vec::new());
    let start = |place: usize| {
        let link = Link::new(&world, plan.network, plan.flaw);
        let node = Arc::new(PermitNode::new(&plan, &world, &link, place, &truth));
        let mut tasks = JoinSet::new();
        for _ in 0..6 {
            tasks.spawn(use_permits(node.clone(), all.clone(), plan, world.clone()));
        }
        (link, node, tasks)
    };
    for place in 0..plan.nodes as usize {
        let (link, node, tasks) = start(place);
        all.lock().unwrap().push(node);
        links.push(link);
        clients.push(tasks);
    }
    let mut expired = 0;
    for trouble in 0..plan.crashes + plan.partitions {
        sleep(LASTS / (plan.crashes + plan.partitions + 1) as u32).await;
        let place = world.draw(|random| random.below(plan.nodes.into())) as usize;
        if trouble < plan.crashes {
            // Whatever ran there is dead, and somebody starts it again.
            links[place].die();
            clients[place].abort_all();
            while clients[place].join_next().await.is_some() {}
            truth.running.lock().unwrap()[place] = 0;
            let (link, node, tasks) = start(place);
            expired += std::mem::replace(&mut all.lock().unwrap()[place], node).expired();
            (links[place], clients[place]) = (link, tasks);
        } else {
            let lasts = world.draw(|random| random.millis(100, 4000));
            (0..3).for_each(|shard| links[place].cut(shard, lasts));
        }
    }
    for mut tasks in clients {
        while tasks.join_next().await.is_some() {}
    }
    sleep(2 * plan.ttl + Duration::from_secs(6)).await;
    expired += all.lock().unwrap().iter().map(|node| node.expired()).sum::<u64>();
    if let Some(why) = truth.excess.lock().unwrap().take() {
        return Err(why);
    }
    // Nothing is lost: somebody new gets all of them.
    let calm = Network { lost: 0, late: 0, ..plan.network };
    let link = Link::new(&world, calm, None);
    let node = PermitNode::new(&plan, &world, &link, 0, &truth);
    match node.hold(plan.limit).await.is_empty() {
        true => Err("some permits did not come back".to_owned()),
        false => Ok((truth.granted.load(Ordering::Relaxed), expired, world.history().trace)),
    }
}

/// Simulates many seeds, and returns how many expired in all of them.
fn judge_all(seeds: Range<u64>, plan: fn(u64) -> PermitPlan) -> Result<u64, String> {
    let mut expired_in_all = 0;
    for seed in seeds {
        let plan = plan(seed);
        let told = |why| format!("seed {seed}: {why}; set SPILLGATE_SEED={seed}: {plan:?}");
        let (granted, expired, _) = simulate(&plan).map_err(told)?;
        // A crash may hold all of few permits for most of the time.
        if granted < 5 {
            return Err(told(format!("only {granted} were granted")));
        }
        expired_in_all += expired;
    }
    Ok(expired_in_all)
}

#[test]
fn no_schedule_hands_out_more_permits_than_there_are() {
    let expired = judge_all(seeds(40), PermitPlan::steady).unwrap();
    assert_eq!(expired, 0, "all were renewed in time");
}

#[test]
fn what_is_handed_out_twice_is_counted_as_expired() {
    let expired = judge_all(seeds(40), PermitPlan::troubled).unwrap();
    assert!(expired > 0, "no holder has outlived its slice");
}

#[test]
fn a_seed_of_permits_is_replayed_exactly() {
    for seed in 0..5 {
        let trace = || simulate(&PermitPlan::troubled(seed)).unwrap().2;
        assert_eq!(trace(), trace(), "seed {seed}");
    }
}

#[test]
fn nodes_that_hand_out_what_they_were_denied_are_caught() {
    let flawed =
        |seed| PermitPlan { flaw: Some(Flaw::GenerousPermits), ..PermitPlan::steady(seed) };
    assert!(judge_all(0..20, flawed).is_err());
}

#[test]
fn nodes_whose_slices_outlast_those_of_redis_are_caught() {
    let flawed = |seed| PermitPlan { paces: (300_000, 300_000), ..PermitPlan::troubled(seed) };
    assert!(judge_all(0..60, flawed).is_err());
}
