//! What several nodes admit to one caller, together, while Redis is away and when it is back.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate_policy::{Gate, LimitCheck, Limits, Policy};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::common::{Bound, Proxy, Server, Span};
use crate::{TURN, is_quiet};

const NODES: u32 = 4;

const BOUND: Bound = Bound { burst: 200, interval: 10_000_000 };

/// How many calls wait for an answer at the same time, at each node.
const CALLERS: u32 = 16;

/// How long Redis is away.
const AWAY: Duration = Duration::from_millis(1500);

/// Nodes try to connect again and again, but not at the same moments: every 350 ms, so far apart.
const APART: Duration = Duration::from_millis(87);

/// How Redis is away.
#[derive(Clone, Copy, Debug)]
enum Away {
    /// It stands still, and its connections stay.
    Stalled,
    /// All connections are lost, and nobody is there.
    Cut,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_go_on_by_their_shares_admit_a_few_requests_above_the_quota() {
    let _turn = TURN.lock().await;
    let rates = if is_quiet() { &[400, 1600, 6000][..] } else { &[1600] };
    let mut excesses = Vec::new();
    for sharing in ["strict", "leased"] {
        for away in if is_quiet() { &[Away::Cut, Away::Stalled][..] } else { &[Away::Cut] } {
            for rate in rates {
                let excess = excess(sharing, *away, *rate).await;
                eprintln!("{sharing}, {away:?}, {rate}/s: {excess} too many");
                excesses.push((sharing, excess));
            }
        }
    }
    // What the others had admitted since each last heard of it.
    let is_small =
        |(sharing, excess): &(&str, u64)| *excess <= if *sharing == "strict" { 10 } else { 20 };
    assert!(excesses.iter().all(is_small), "{excesses:?}");
}

type SharedGate = Arc<Gate<RedisStore<Client>>>;

struct Record {
    begin: Instant,
    admitted: Mutex<Vec<Span>>,
    is_over: AtomicBool,
}

/// How many more than the quota are admitted to a caller who asks for so many calls a second.
async fn excess(sharing: &str, away: Away, rate: u32) -> u64 {
    let server = Server::redis();
    let (mut paths, mut asking) = (Vec::new(), JoinSet::new());
    let record = Arc::new(Record {
        begin: Instant::now(),
        admitted: Mutex::default(),
        is_over: AtomicBool::new(false),
    });
    let every = Duration::from_secs(1) * NODES * CALLERS / rate;
    for _ in 0..NODES {
        let path = Proxy::to(server.port).await;
        let node = node(&path.url(), sharing).await;
        paths.push(path);
        for _ in 0..CALLERS {
            asking.spawn(ask(record.clone(), node.clone(), every));
        }
    }
    // Until the burst is spent.
    sleep(Duration::from_millis(1500)).await;
    match away {
        Away::Stalled => server.pause(),
        Away::Cut => paths.iter().for_each(|path| {
            path.silence_all(true);
            path.cut();
        }),
    }
    sleep(AWAY - APART * NODES).await;
    for path in &paths {
        path.cut();
        sleep(APART).await;
    }
    match away {
        Away::Stalled => server.resume(),
        Away::Cut => paths.iter().for_each(|path| path.silence_all(false)),
    }
    // Longer than shares count.
    sleep(Duration::from_millis(2500)).await;
    record.is_over.store(true, Ordering::SeqCst);
    asking.join_all().await;
    let admitted = std::mem::take(&mut *record.admitted.lock().unwrap());
    let most = BOUND.burst + record.begin.elapsed().as_millis() as u64 / 10;
    assert!(admitted.len() as u64 > most / 2, "only {} of {most}", admitted.len());
    BOUND.excess(&admitted)
}

async fn node(url: &str, sharing: &str) -> SharedGate {
    let client = Client::connect(Options::new(url).unwrap()).await.unwrap();
    let settings = Settings::default().nodes(NonZeroU32::new(NODES).unwrap());
    let store = RedisStore::new(client, &settings).unwrap();
    let policy = format!(
        "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '100/s burst 200'\n\
         sharing = '{sharing}'"
    );
    Arc::new(Gate::with_store(Policy::from_toml(&policy).unwrap(), store).unwrap())
}

/// Asks again and again, and records when each admitted call began and ended.
async fn ask(record: Arc<Record>, node: SharedGate, every: Duration) {
    while !record.is_over.load(Ordering::SeqCst) {
        let check = LimitCheck { limit: "l", values: &["alice"], cost: 1 };
        let from = record.begin.elapsed();
        if node.decide(&Limits(&[check])).await.unwrap().is_allowed() {
            let span = (from.as_nanos() as u64, record.begin.elapsed().as_nanos() as u64);
            record.admitted.lock().unwrap().push(span);
        }
        sleep(every).await;
    }
}
