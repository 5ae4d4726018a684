//! What leased limits cost and let through at any demand: nodes that are asked at a steady pace,
//! whatever they answer, a millisecond or two from Redis.

use spillgate_testing::CheckLimit;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::algorithm::{Algorithm, TokenBucket, Word};
use spillgate::{Quota, Timestamp};
use spillgate_policy::{Gate, Policy};
use spillgate_redis::{RedisStore, Settings};
use spillgate_testing::{effort, seeds};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::common::{Bound, Span};
use crate::simulation::link::Link;
use crate::simulation::plan::Network;
use crate::simulation::random::{Random, mix};
use crate::simulation::world::{MARGIN, NodeClock, World};

/// A quota and who asks for it.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Tokens a second, and at once.
    rate: u64,
    burst: u64,
    nodes: u32,
    /// How many of the nodes are asked.
    asked: u32,
    /// What is asked for, in percent of the rate.
    demand: u64,
    /// What calls cost, in turn.
    costs: [u64; 2],
    rhythm: Rhythm,
    seconds: u64,
}

/// When calls come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rhythm {
    /// One after the other, at a steady pace.
    Steady,
    /// At any time.
    Random,
    /// Together, every so many milliseconds.
    Bursts(u64),
}

/// What came of a case.
#[derive(Debug)]
struct Came {
    /// Tokens, and when.
    admitted: Vec<Span>,
    /// When each node that was asked has called Redis.
    calls: Vec<Vec<Duration>>,
    /// How much each node has let through.
    passed: Vec<u64>,
    /// How much one bucket in one place would have.
    at_most: u64,
}

const NETWORK: Network = Network { fastest: 1, slowest: 2, lost: 0, late: 0 };

impl Case {
    fn run(self) -> Came {
        self.run_over(NETWORK)
    }

    fn run_over(self, network: Network) -> Came {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(self.simulate(network))
    }

    async fn simulate(self, network: Network) -> Came {
        let world = Arc::new(World::new(7));
        let links: Vec<_> = (0..self.asked).map(|_| Link::new(&world, network, None)).collect();
        let mut asking = JoinSet::new();
        for (node, link) in (0..).zip(&links) {
            asking.spawn(self.ask(node, link.clone(), Arc::clone(&world)));
        }
        let admitted = asking.join_all().await;
        Came {
            passed: admitted.iter().map(|spans| spans.len() as u64).collect(),
            admitted: admitted.concat(),
            calls: links.iter().map(Link::sent).collect(),
            at_most: self.in_one_place(),
        }
    }

    /// How much one bucket lets through that is asked for all of it.
    fn in_one_place(self) -> u64 {
        let of_node = |node| {
            let mut due: Vec<_> = (0..self.calls()).map(|call| self.due(node, call)).collect();
            due.sort_unstable();
            due.into_iter().zip(self.costs.into_iter().cycle())
        };
        let mut calls: Vec<_> = (0..self.asked).flat_map(of_node).collect();
        calls.sort_unstable();
        let quota = Quota::per_second(self.rate).burst(self.burst).build().unwrap();
        let (bucket, mut word) = (TokenBucket::new(&quota).unwrap(), Word::from_bits(0));
        let mut passed = 0;
        for (due, cost) in calls {
            if let Some(spent) = bucket.spend(word, Timestamp::from_secs(1000) + due, cost) {
                (word, passed) = (spent, passed + cost);
            }
        }
        passed
    }

    /// Asks one node, and tells when tokens were let through.
    async fn ask(self, node: u32, link: Link, world: Arc<World>) -> Vec<Span> {
        let clock = NodeClock { began: Instant::now(), pace: 1_000_000 };
        let nodes = NonZeroU32::new(self.nodes).unwrap();
        let settings = Settings::default().clock(clock).margin(MARGIN).nodes(nodes);
        let store = RedisStore::new(link, &settings).unwrap();
        let gate = Arc::new(Gate::with_store(self.policy(), store).unwrap());
        let admitted = Arc::new(Mutex::new(Vec::new()));
        let (begin, mut calls) = (Instant::now(), JoinSet::new());
        let mut due: Vec<_> = (0..self.calls()).map(|call| self.due(node, call)).collect();
        due.sort_unstable();
        for (call, due) in due.into_iter().enumerate() {
            let cost = self.costs[call % 2];
            sleep_until(begin + due).await;
            let (gate, world, admitted) =
                (Arc::clone(&gate), Arc::clone(&world), Arc::clone(&admitted));
            calls.spawn(async move {
                let called = world.elapsed();
                let decision = gate.check_limit("l", &["alice"], cost).await.unwrap();
                if decision.is_allowed() {
                    let at = world.true_time(decision.now(), called).as_nanos() as u64;
                    admitted.lock().unwrap().extend((0..cost).map(|_| (at, at)));
                }
            });
            while calls.try_join_next().is_some() {}
        }
        calls.join_all().await;
        std::mem::take(&mut *admitted.lock().unwrap())
    }

    fn policy(self) -> Policy {
        let Self { rate, burst, .. } = self;
        let policy = format!(
            "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nsharing = 'leased'\n\
             quota = '{rate}/s burst {burst}'\noutage = 'closed'"
        );
        Policy::from_toml(&policy).unwrap()
    }

    /// How many calls each node gets.
    fn calls(self) -> u64 {
        let tokens = self.seconds * self.rate * self.demand / 100 / u64::from(self.asked);
        2 * tokens / self.costs.iter().sum::<u64>()
    }

    /// When a node gets a call.
    fn due(self, node: u32, call: u64) -> Duration {
        let nanos = self.seconds * 1_000_000_000;
        let part = call as f64 + f64::from(node) / f64::from(self.asked);
        let steady = (nanos as f64 * part / self.calls() as f64) as u64;
        Duration::from_nanos(match self.rhythm {
            Rhythm::Steady => steady,
            Rhythm::Random => mix(call << 8 | u64::from(node)) % nanos,
            Rhythm::Bursts(millis) => steady - steady % (millis * 1_000_000),
        })
    }

    /// The most calls that a node makes in a second.
    fn most_calls(self) -> f64 {
        let needed = 2.0 * f64::from(self.nodes) * self.rate as f64 / self.burst as f64;
        needed.max(25.0)
    }
}

impl Came {
    /// The most calls of one node in a second, on average.
    fn calls(&self, case: Case) -> f64 {
        let most = self.calls.iter().map(Vec::len).max().unwrap_or(0);
        most as f64 / case.seconds as f64
    }

    /// The most in any one second, after the first.
    fn worst_second(&self) -> usize {
        let worst = |calls: &Vec<Duration>| {
            let later = |call: &&Duration| **call >= Duration::from_secs(1);
            let within = |from: &Duration| {
                let end = *from + Duration::from_secs(1);
                calls.iter().filter(|call| *call >= from && **call < end).count()
            };
            calls.iter().filter(later).map(within).max().unwrap_or(0)
        };
        self.calls.iter().map(worst).max().unwrap_or(0)
    }

    fn excess(&self, case: Case) -> u64 {
        Bound { burst: case.burst, interval: 1_000_000_000 / case.rate }.excess(&self.admitted)
    }

    /// In no interval is more admitted than the quota, no node calls Redis more often than
    /// it may, and of the quota at least so many percent are used.
    fn holds(&self, case: Case, least_used: u64) -> Result<(), String> {
        let (calls, worst, most) = (self.calls(case), self.worst_second(), case.most_calls());
        let is_cheap = calls <= most && worst as f64 <= most;
        let is_used = self.admitted.len() as u64 * 100 >= self.at_most * least_used;
        let excess = self.excess(case);
        if excess == 0 && is_cheap && is_used {
            return Ok(());
        }
        Err(format!(
            "{excess} too many, {calls:.1} calls a second and {worst} at worst where {most:.1} are \
             allowed, {:?} of {} used: {case:?}",
            self.passed, self.at_most
        ))
    }
}

/// Quotas, how many nodes share them, and how many of these are asked.
const QUOTAS: [(u64, u64, u32, u32); 5] =
    [(1000, 2000, 4, 4), (100, 200, 8, 8), (1000, 50, 1, 1), (1000, 2000, 8, 1), (100, 200, 8, 1)];

/// Percent of the rate.
const DEMANDS: [u64; 5] = [50, 100, 200, 500, 5000];

/// All of them, or in a plain run every fourth: which ones is up to the seed.
fn cases(costs: [u64; 2], rhythm: Rhythm) -> impl Iterator<Item = Case> {
    let case = move |(rate, burst, nodes, asked)| {
        DEMANDS.into_iter().map(move |demand| {
            let seconds = if demand > 500 { 4 } else { 10 };
            Case { rate, burst, nodes, asked, demand, costs, rhythm, seconds }
        })
    };
    let (first, every) = if effort() > 1 { (0, 1) } else { (seeds(1).start as usize % 4, 4) };
    QUOTAS.into_iter().flat_map(case).skip(first).step_by(every)
}

#[test]
fn calls_are_bounded_and_the_quota_is_used_at_any_demand() {
    for case in cases([1, 1], Rhythm::Steady) {
        case.run().holds(case, 97).unwrap();
    }
}

#[test]
fn so_it_is_whatever_calls_cost_and_whenever_they_come() {
    let costs_and_rhythms = [
        ([5, 5], Rhythm::Steady),
        ([1, 3], Rhythm::Random),
        ([1, 1], Rhythm::Bursts(100)),
        // Longer apart than slices are held.
        ([1, 1], Rhythm::Bursts(300)),
    ];
    for (costs, rhythm) in costs_and_rhythms {
        for case in cases(costs, rhythm) {
            case.run().holds(case, 90).unwrap();
        }
    }
}

#[test]
fn of_nodes_that_all_want_everything_none_starves() {
    for case in cases([1, 1], Rhythm::Steady).filter(|case| case.asked > 1 && case.demand > 100) {
        let passed = case.run().passed;
        let fair = passed.iter().sum::<u64>() / u64::from(case.asked);
        let is_fair = passed.iter().all(|passed| *passed > fair / 3 && *passed < fair * 3);
        assert!(is_fair, "{passed:?} of {case:?}");
    }
}

#[test]
fn nodes_that_are_far_from_redis_admit_no_more_and_hardly_less() {
    let network = Network { fastest: 8, slowest: 12, ..NETWORK };
    // A burst of 50 is refilled in two round trips: slots of it pass on the way.
    for case in cases([1, 1], Rhythm::Steady).filter(|case| case.burst > 50) {
        case.run_over(network).holds(case, 95).unwrap();
    }
}

impl Case {
    /// Any quota that is leased, among any nodes, at any demand.
    fn any(seed: u64) -> Option<Self> {
        let mut random = Random::new(seed);
        let nodes = random.one_of(&[1, 2, 4, 8]);
        let case = Self {
            rate: random.one_of(&[10, 50, 100, 300, 1000, 2000]),
            burst: random.one_of(&[40, 64, 100, 200, 500, 2000, 6000]),
            nodes,
            asked: random.one_of(&[1, nodes, nodes]),
            demand: random.one_of(&[50, 90, 100, 110, 150, 200, 500, 2000]),
            costs: random.one_of(&[[1, 1], [1, 1], [3, 3], [1, 4], [2, 5]]),
            rhythm: random.one_of(&[Rhythm::Steady, Rhythm::Random, Rhythm::Bursts(10)]),
            seconds: 6,
        };
        let (share, needed) = (case.burst / 2 / u64::from(nodes), case.most_calls());
        (share >= 16 && needed <= 100.0).then_some(case)
    }

    /// How much of what one bucket lets through is used, in percent.
    fn least_used(self) -> u64 {
        let [few, many] = self.costs;
        // Full again within the 20 ms of two bursts of calls, and then tokens are lost.
        let is_soon_full = self.burst * 1000 <= 20 * self.rate;
        // A remainder that the next call does not fit in is a large part of a small share.
        let has_remainders = many % few > 0 && self.burst / u64::from(self.nodes) < 64 * many;
        match self.rhythm {
            Rhythm::Bursts(_) if is_soon_full => 80,
            Rhythm::Random if is_soon_full => 85,
            _ if has_remainders => 90,
            _ => 95,
        }
    }
}

#[test]
fn so_it_is_for_any_quota() {
    for (seed, case) in seeds(40).filter_map(|seed| Some((seed, Case::any(seed)?))) {
        let came = case.run();
        assert_eq!(came.excess(case), 0, "seed {seed}: {case:?}");
        // A full bucket is drained first.
        let first = f64::from(2 * case.nodes + 8) / case.seconds as f64;
        let (calls, most) = (came.calls(case), case.most_calls() + first);
        assert!(calls <= most, "seed {seed}: {calls} calls where {most} are allowed, {case:?}");
        let (used, all) = (came.admitted.len() as u64, came.at_most);
        let least = case.least_used();
        assert!(used * 100 >= all * least, "seed {seed}: {used} of {all} used, {case:?}");
    }
}
