//! A server that answers nobody for a moment, again and again: what is admitted in the end.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate_policy::{Gate, LimitCheck, Limits, Policy};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::common::{Bound, Server, Span};
use crate::faults::node::is_soak;

type Node = Arc<Gate<RedisStore<Client>>>;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalls_that_are_waited_for_admit_nothing_above_the_quota() {
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
    let fleet: Vec<_> = {
        let mut fleet = Vec::new();
        for _ in 0..nodes {
            fleet.push(node(&server.url(), nodes).await);
        }
        fleet
    };
    let begin = Instant::now();
    let rounds = if is_soak() { 60 / (2 * stalls.len()) } else { 1 };
    let end = begin + Duration::from_secs(2) * (rounds * stalls.len()) as u32;
    let mut asking = JoinSet::new();
    for node in &fleet {
        for limit in ["bucket", "daily", "window", "leased"] {
            for _ in 0..CALLERS {
                asking.spawn(ask_until(end, begin, Arc::clone(node), limit));
            }
        }
    }
    for (round, stall) in stalls.iter().cycle().take(rounds * stalls.len()).enumerate() {
        sleep_until(begin + Duration::from_millis(2000 * round as u64 + 700)).await;
        server.pause();
        sleep(*stall).await;
        server.resume();
    }
    let mut admitted = Admitted {
        bucket: Vec::new(),
        daily: Vec::new(),
        window: Vec::new(),
        leased: Vec::new(),
        by_shares: 0,
    };
    for (limit, spans) in asking.join_all().await {
        match limit {
            "bucket" => admitted.bucket.extend(spans),
            "daily" => admitted.daily.extend(spans),
            "window" => admitted.window.extend(spans),
            _ => admitted.leased.extend(spans),
        }
    }
    admitted.by_shares = fleet.iter().map(|node| node.store().stats().outage_local).sum();
    eprintln!("{nodes} nodes, {stalls:?}: {} decisions by shares", admitted.by_shares);
    admitted
}

async fn node(url: &str, nodes: u32) -> Node {
    let client = Client::connect(Options::new(url).unwrap()).await.unwrap();
    let settings = Settings::default().nodes(NonZeroU32::new(nodes).unwrap());
    let store = RedisStore::new(client, &settings).unwrap();
    Arc::new(Gate::with_store(Policy::from_toml(POLICY).unwrap(), store).unwrap())
}

/// Asks again and again, and tells when each call that was admitted began and ended.
async fn ask_until(
    end: Instant,
    begin: Instant,
    node: Node,
    limit: &'static str,
) -> (&'static str, Vec<Span>) {
    let mut spans = Vec::new();
    while Instant::now() < end {
        let check = LimitCheck { limit, values: &["alice"], cost: 1 };
        let from = begin.elapsed();
        let outcome = node.decide(&Limits(&[check])).await.unwrap();
        if outcome.is_allowed() {
            spans.push((from.as_nanos() as u64, begin.elapsed().as_nanos() as u64));
        }
        sleep(EVERY).await;
    }
    (limit, spans)
}
