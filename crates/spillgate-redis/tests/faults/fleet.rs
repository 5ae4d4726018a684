//! Several nodes that go along with a failover.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::common::{Sentinels, Server, Span, eventually, real_time};
use crate::faults::calls::CallResult;
use crate::faults::node::{HOT, LimitKind, Node};
use crate::{TURN, is_quiet};

const NODES: usize = 3;

/// Longer than Sentinels take to promote a replica.
const TIME_OUT: Duration = Duration::from_secs(2);

/// Nodes that ask all the time about a caller who uses up its quota.
struct Fleet {
    nodes: Vec<Node>,
    has_ended: Arc<AtomicBool>,
    asking: JoinSet<(Vec<u64>, Duration)>,
}

impl Fleet {
    async fn start(sentinels: &Sentinels) -> Self {
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(Node::connect_patiently(&sentinels.url(), TIME_OUT).await);
        }
        eventually("all nodes listen at all Sentinels", || {
            (0..3).all(|place| sentinels.subscribers(place) == NODES)
        });
        let (has_ended, mut asking) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for node in nodes.iter().cycle().take(NODES * 4) {
            asking.spawn(ask(node.clone(), has_ended.clone()));
        }
        Self { nodes, has_ended, asking }
    }

    async fn end(self) -> Outcomes {
        self.has_ended.store(true, Ordering::SeqCst);
        let (mut admitted, mut longest) = (Vec::new(), Duration::ZERO);
        for (own, took) in self.asking.join_all().await {
            admitted.extend(own);
            longest = longest.max(took);
        }
        Outcomes { admitted, longest, outages: self.nodes.iter().map(Node::outages).sum() }
    }
}

/// What came of all calls.
struct Outcomes {
    /// When Redis admitted some, by its own clock.
    admitted: Vec<u64>,
    /// How long one took at most.
    longest: Duration,
    outages: u64,
}

async fn ask(node: Node, has_ended: Arc<AtomicBool>) -> (Vec<u64>, Duration) {
    let (mut admitted, mut longest) = (Vec::new(), Duration::ZERO);
    while !has_ended.load(Ordering::SeqCst) {
        let begin = Instant::now();
        if let CallResult::Redis { now, is_allowed: true } = node.ask(LimitKind::Hot, "one").await {
            admitted.push(now);
        }
        longest = longest.max(begin.elapsed());
        sleep(Duration::from_millis(2)).await;
    }
    (admitted, longest)
}

/// How much was admitted beyond what the caller has.
fn forgiven(admitted: &[u64]) -> u64 {
    let spans: Vec<Span> = admitted.iter().map(|now| (*now, *now)).collect();
    HOT.excess(&spans)
}

/// A number that a server tells of its replication.
fn offset(server: &Server, name: &str) -> u64 {
    let info = server.command("INFO replication");
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
}

/// Waits until the replica is named as the master, and a moment longer than nodes take to notice.
async fn until_over(sentinels: &Sentinels) {
    let port = sentinels.replica.port;
    while sentinels.named_master() != Some(port) {
        sleep(Duration::from_millis(5)).await;
    }
    sleep(Duration::from_millis(if is_quiet() { 2500 } else { 1000 })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_failover_forgives_only_what_was_on_its_way_to_the_replica() {
    let _turn = TURN.lock().await;
    // A machine that stands still in the wrong moment may be late once.
    for last in [false, false, true] {
        let sentinels = Sentinels::start();
        let fleet = Fleet::start(&sentinels).await;
        // All of the burst is spent.
        sleep(Duration::from_millis(if is_quiet() { 2000 } else { 700 })).await;
        sentinels.exchange_master();
        until_over(&sentinels).await;
        // What the old master wrote that the new one never got: some 130 bytes for each call.
        let taken_over = offset(&sentinels.replica, "second_repl_offset");
        let lost = offset(&sentinels.master, "master_repl_offset").saturating_sub(taken_over - 1);
        let Outcomes { admitted, longest, outages } = fleet.end().await;
        let (forgiven, calls) = (forgiven(&admitted), admitted.len());
        eprintln!(
            "planned failover: {forgiven} of {calls} tokens forgiven, {lost} bytes were not \
             replicated, {outages} outages, the longest call took {longest:?}"
        );
        assert!(forgiven <= lost.div_ceil(100), "{forgiven} forgiven, {lost} bytes lost");
        if forgiven <= 2 && outages == 0 {
            return;
        }
        assert!(!last, "each time much was forgiven, or there were outages");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unplanned_failover_forgives_only_what_was_on_its_way_to_the_replica() {
    let _turn = TURN.lock().await;
    let mut sentinels = Sentinels::start();
    let fleet = Fleet::start(&sentinels).await;
    sleep(Duration::from_millis(if is_quiet() { 2000 } else { 700 })).await;
    sentinels.master.kill();
    let died = real_time();
    until_over(&sentinels).await;
    let Outcomes { admitted, outages, .. } = fleet.end().await;
    let after = admitted.iter().filter(|now| **now > died).count();
    let (forgiven, calls) = (forgiven(&admitted), admitted.len());
    // Of a replica that lags behind by no more than this.
    let second = died.saturating_sub(1_000_000_000);
    let unknown = admitted.iter().filter(|now| (second..=died).contains(*now)).count() as u64;
    eprintln!("kill -9: {forgiven} of {calls} tokens forgiven, {unknown} in the last second");
    assert!(after > 0, "nobody was admitted by the new master");
    assert!(forgiven <= unknown.min(HOT.burst), "{forgiven} forgiven, {unknown} at most unknown");
    assert_eq!(outages, NODES as u64, "one for each node");
}
