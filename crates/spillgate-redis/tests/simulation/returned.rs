//! What becomes of tokens that nodes hold and do not need: they are there again, or counted.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::algorithm::{Algorithm, TokenBucket, Word};
use spillgate::{Quota, Timestamp};
use spillgate_policy::{Gate, Policy};
use spillgate_redis::{RedisStore, Settings};
use spillgate_testing::{CheckLimit, seeds};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::simulation::link::Link;
use crate::simulation::plan::Network;
use crate::simulation::random::Random;
use crate::simulation::world::{MARGIN, NodeClock, World};

const NODES: u32 = 8;

const NETWORK: Network = Network { fastest: 1, slowest: 2, lost: 0, late: 0 };

/// A quota, and what becomes of the nodes that share it.
#[derive(Clone, Copy, Debug)]
struct Case {
    tokens: u64,
    /// In which they are refilled.
    period: Duration,
    burst: u64,
    /// The longest time between two calls of a node, in milliseconds.
    pause: u64,
    end: End,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// Nobody calls any more.
    Idle,
    /// All but one are shut down.
    Shutdown,
}

/// What came of a case, in tokens.
#[derive(Debug)]
struct Came {
    /// What one bucket has left that has admitted the same.
    due: u64,
    left: u64,
    counted: u64,
}

type SimGate = Arc<Gate<RedisStore<Link>>>;

impl Case {
    fn run(self) -> Came {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(self.simulate())
    }

    async fn simulate(self) -> Came {
        let world = Arc::new(World::new(self.seed));
        let gates: Vec<_> = (0..NODES).map(|_| self.gate(&world)).collect();
        // Of a bucket that is full, tokens that are held pass with those that it cannot hold.
        let first = self.burst / 4;
        let decision = gates[0].check_limit("l", &["alice"], first).await.unwrap();
        assert!(decision.is_allowed());
        let at = world.true_time(decision.now(), Duration::ZERO);
        let admitted = Arc::new(Mutex::new(vec![(at, first)]));
        let mut asking = JoinSet::new();
        for (gate, node) in gates.iter().zip(1..) {
            let (gate, world, admitted) =
                (Arc::clone(gate), Arc::clone(&world), Arc::clone(&admitted));
            asking.spawn(self.ask(self.seed * 100 + node, gate, world, admitted));
        }
        asking.join_all().await;
        if matches!(self.end, End::Shutdown) {
            let mut ending = JoinSet::new();
            for gate in gates[1..].iter().map(Arc::clone) {
                ending.spawn(async move { gate.store().shutdown().await });
            }
            ending.join_all().await;
        }
        sleep(Duration::from_secs(3)).await;
        let decision = gates[0].check_limit("l", &["alice"], 0).await.unwrap();
        let (left, end) = (decision.remaining(), world.true_time(decision.now(), Duration::ZERO));
        let counted = gates.iter().map(|gate| gate.store().stats().leases.lost_tokens).sum();
        let mut admitted = std::mem::take(&mut *admitted.lock().unwrap());
        admitted.sort_unstable();
        let due = self.in_one_place(&admitted, end);
        Came { due, left, counted }
    }

    fn gate(self, world: &Arc<World>) -> SimGate {
        let clock = NodeClock { began: Instant::now(), pace: 1_000_000 };
        let nodes = NonZeroU32::new(NODES).unwrap();
        let settings = Settings::default().clock(clock).margin(MARGIN).nodes(nodes);
        let store = RedisStore::new(Link::new(world, NETWORK, None), &settings).unwrap();
        let policy = format!(
            "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nsharing = 'leased'\n\
             quota = '{} per {} s burst {}'",
            self.tokens,
            self.period.as_secs(),
            self.burst
        );
        Arc::new(Gate::with_store(Policy::from_toml(&policy).unwrap(), store).unwrap())
    }

    /// Calls a node now and then for a while, and notes what was admitted, and when.
    async fn ask(
        self,
        seed: u64,
        gate: SimGate,
        world: Arc<World>,
        admitted: Arc<Mutex<Vec<(Duration, u64)>>>,
    ) {
        let (mut random, end) = (Random::new(seed), Instant::now() + Duration::from_secs(2));
        while Instant::now() < end {
            sleep(random.millis(1, self.pause)).await;
            let cost = random.between(1, 2);
            let called = world.elapsed();
            let decision = gate.check_limit("l", &["alice"], cost).await.unwrap();
            if decision.is_allowed() {
                let at = world.true_time(decision.now(), called);
                admitted.lock().unwrap().push((at, cost));
            }
        }
    }

    /// What one bucket has left in the end that has admitted the same.
    fn in_one_place(self, admitted: &[(Duration, u64)], end: Duration) -> u64 {
        let quota = Quota::per(self.tokens, self.period).burst(self.burst).build().unwrap();
        let (bucket, mut word) = (TokenBucket::new(&quota).unwrap(), Word::from_bits(0));
        let at = |elapsed| Timestamp::from_secs(1000) + elapsed;
        for (elapsed, cost) in admitted {
            // Never too much is admitted.
            word = bucket.spend(word, at(*elapsed), *cost).unwrap();
        }
        bucket.remaining(word, at(end))
    }
}

impl Case {
    /// All comes back, but for what was refilled while it was held, and that is counted.
    fn holds(self) -> Result<(), String> {
        let Came { due, left, counted } = self.run();
        let (rate, held) = (self.tokens as f64 / self.period.as_secs_f64(), 0.5);
        let most = (rate * held * f64::from(NODES)).ceil() as u64;
        let lost = due.checked_sub(left).ok_or("there is more than there can be")?;
        // Each node counts whole tokens.
        if lost <= most && lost <= counted + u64::from(NODES / 2) {
            return Ok(());
        }
        Err(format!("{lost} lost where {most} may be, and {counted} counted: {self:?}"))
    }
}

#[test]
fn what_is_not_spent_comes_back_or_is_counted() {
    // Tokens, the seconds in which they are refilled, burst, and pause.
    let quotas = [
        (10_000, 86_400, 10_000, 10),
        (10_000, 3600, 10_000, 10),
        (10_000, 3600, 10_000, 60),
        (1600, 60, 1600, 30),
        (100, 1, 1600, 30),
        (1000, 1, 5000, 5),
    ];
    for (tokens, seconds, burst, pause) in quotas {
        for end in [End::Idle, End::Shutdown] {
            for seed in seeds(3) {
                let period = Duration::from_secs(seconds);
                Case { tokens, period, burst, pause, end, seed }.holds().unwrap();
            }
        }
    }
}
