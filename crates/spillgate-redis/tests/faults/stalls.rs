//! A server that answers nobody for a moment, again and again: what is admitted in the end.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate_policy::{Gate, LimitCheck, Limits, Policy};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::common::{Bound, Server, Span};
use crate::{TURN, is_quiet};

type SharedGate = Arc<Gate<RedisStore<Client>>>;

/// Callers ask for several times what each of these lets through.
const POLICY: &str = "
    [[limit]]
    name = 'bucket'
    by-name = true
    per = 'user'
    quota = '40/s burst 60'

    [[limit]]
    name = 'daily'
    by-name = true
    per = 'user'
    quota = '200/day'

    [[limit]]
    name = 'window'
    by-name = true
    per = 'user'
    quota = '50/day'
    algorithm = 'fixed-window'

    [[limit]]
    name = 'leased'
    by-name = true
    per = 'user'
    quota = '40/s burst 200'
    sharing = 'leased'
";

const BUCKET: Bound = Bound { burst: 60, interval: 25_000_000 };
const DAILY: Bound = Bound { burst: 200, interval: 432_000_000_000 };
const LEASED: Bound = Bound { burst: 200, interval: 25_000_000 };

/// How many calls wait for an answer at the same time, at each node and of each limit.
const CALLERS: usize = 4;

/// How often each of them asks.
const EVERY: Duration = Duration::from_millis(12);

/// The limits, with what each admits at once.
const LIMITS: [(&str, u64); 4] = [("bucket", 60), ("daily", 200), ("window", 50), ("leased", 200)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalls_that_are_waited_for_admit_nothing_above_the_quota() {
    let _turn = TURN.lock().await;
    let stalls = [60, 120, 240].map(Duration::from_millis);
    for nodes in [1, 2] {
        let admitted = admitted_under(&stalls, nodes).await;
        // On a machine that is busy with other things, a stall may last longer than it should.
        let unseen = if nodes > 1 && admitted.by_shares > 0 { 1 } else { 0 };
        admitted.keeps_the_bounds(unseen);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalls_that_are_not_waited_for_admit_nothing_above_the_quota_at_the_node_that_knows() {
    let _turn = TURN.lock().await;
    let stalls = [600, 300].map(Duration::from_millis);
    let admitted = admitted_under(&stalls, 1).await;
    assert!(admitted.by_shares > 0, "they were all waited for");
    admitted.keeps_the_bounds(0);
}

/// What was admitted under each limit, to one caller.
struct Admitted {
    bucket: Vec<Span>,
    daily: Vec<Span>,
    window: Vec<Span>,
    leased: Vec<Span>,
    /// How many decisions a node has made by itself.
    by_shares: u64,
}

impl Admitted {
    /// Nothing is above the bounds but so many bursts.
    fn keeps_the_bounds(&self, bursts: u64) {
        let buckets = [
            ("bucket", BUCKET, &self.bucket),
            ("daily", DAILY, &self.daily),
            ("leased", LEASED, &self.leased),
        ];
        for (name, bound, spans) in buckets {
            let excess = bound.excess(spans);
            eprintln!("{name}: {} admitted, {excess} too many", spans.len());
            assert!(excess <= bursts * bound.burst, "{name}: {excess} too many");
            assert!(spans.len() as u64 >= bound.burst, "{name}: only {}", spans.len());
        }
        // If midnight has passed, there were two windows.
        let window = self.window.len();
        assert!([50, 100].contains(&window) || bursts > 0, "{window} in a window");
    }
}

async fn admitted_under(stalls: &[Duration], nodes: u32) -> Admitted {
    let server = Server::redis();
    let mut fleet = Vec::new();
    for _ in 0..nodes {
        fleet.push(node(&server.url(), nodes).await);
    }
    let record = Arc::new(Record::new());
    let mut asking = JoinSet::new();
    for node in &fleet {
        for limit in 0..LIMITS.len() {
            for _ in 0..CALLERS {
                asking.spawn(ask(Arc::clone(&record), Arc::clone(node), limit));
            }
        }
    }
    record.bursts_are_spent().await;
    let rounds = if is_quiet() { 60 / (2 * stalls.len()) } else { 1 };
    let mut next = Instant::now();
    for stall in stalls.iter().cycle().take(rounds * stalls.len()) {
        server.pause();
        sleep(*stall).await;
        server.resume();
        next += if is_quiet() { Duration::from_secs(2) } else { Duration::from_millis(1200) };
        sleep_until(next).await;
    }
    record.is_over.store(true, Ordering::SeqCst);
    asking.join_all().await;
    let [bucket, daily, window, leased] =
        record.spans.each_ref().map(|spans| std::mem::take(&mut *spans.lock().unwrap()));
    let by_shares = fleet.iter().map(|node| node.store().stats().outage_local).sum();
    eprintln!("{nodes} nodes, {stalls:?}: {by_shares} decisions by shares");
    Admitted { bucket, daily, window, leased, by_shares }
}

/// When each admitted call began and ended, by limit.
struct Record {
    begin: Instant,
    spans: [Mutex<Vec<Span>>; LIMITS.len()],
    is_over: AtomicBool,
}

impl Record {
    fn new() -> Self {
        Self { begin: Instant::now(), spans: Default::default(), is_over: AtomicBool::new(false) }
    }

    /// Waits until each limit has admitted its burst, however long that takes on a busy machine: a
    /// call that a stall cuts off may be spent and not admitted.
    async fn bursts_are_spent(&self) {
        let admitted = |limit: usize| self.spans[limit].lock().unwrap().len() as u64;
        while !(0..LIMITS.len()).all(|limit| admitted(limit) >= LIMITS[limit].1) {
            let seconds = self.begin.elapsed().as_secs();
            assert!(seconds < 60, "{:?} admitted", [0, 1, 2, 3].map(admitted));
            sleep(EVERY).await;
        }
    }
}

async fn node(url: &str, nodes: u32) -> SharedGate {
    let client = Client::connect(Options::new(url).unwrap()).await.unwrap();
    let settings = Settings::default().nodes(NonZeroU32::new(nodes).unwrap());
    let store = RedisStore::new(client, &settings).unwrap();
    Arc::new(Gate::with_store(Policy::from_toml(POLICY).unwrap(), store).unwrap())
}

/// Asks again and again, and records when each admitted call began and ended.
async fn ask(record: Arc<Record>, node: SharedGate, limit: usize) {
    while !record.is_over.load(Ordering::SeqCst) {
        let check = LimitCheck { limit: LIMITS[limit].0, values: &["alice"], cost: 1 };
        let from = record.begin.elapsed();
        let outcome = node.decide(&Limits(&[check])).await.unwrap();
        if outcome.is_allowed() {
            let span = (from.as_nanos() as u64, record.begin.elapsed().as_nanos() as u64);
            record.spans[limit].lock().unwrap().push(span);
        }
        sleep(EVERY).await;
    }
}
