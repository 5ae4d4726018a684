use std::time::Duration;

use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep};

use crate::common::Server;
use crate::faults::calls::{CallResult, Calls};
use crate::faults::load::{Load, saturation};
use crate::faults::node::{LimitKind, Node, SHARE, time_out};
use crate::{TURN, is_quiet};

/// A node under half the load that it could bear, or less.
pub(crate) struct Scene {
    pub(crate) node: Node,
    what: &'static str,
    rate: f64,
    rounds: usize,
    /// The memory of this process after the first round, in KiB.
    memory: Option<u64>,
    _turn: MutexGuard<'static, ()>,
}

/// What happened in a round.
pub(crate) struct Round {
    pub(crate) calls: Calls,
    /// Those made until nothing was wrong any more.
    until_back: Calls,
    /// Those made while something was wrong, and until Redis decided again.
    troubled: Calls,
    /// Those made after that.
    after: Calls,
    /// How long it took to decide again, once that was possible.
    recovery: Duration,
}

/// How long nothing is wrong before a fault and after it.
fn calm() -> Duration {
    Duration::from_millis(if is_quiet() { 400 } else { 250 })
}

/// How long a fault takes.
pub(crate) fn fault() -> Duration {
    Duration::from_millis(if is_quiet() { 800 } else { 500 })
}

/// The most calls a second on a machine that may have less time for us in the next moment.
const BUSY: f64 = 4_000.0;

/// How often a fault happens.
pub(crate) fn rounds() -> usize {
    if is_quiet() { 5 } else { 2 }
}

impl Scene {
    pub(crate) async fn new(what: &'static str, url: &str) -> Self {
        let turn = TURN.lock().await;
        let node = Node::connect(url).await;
        let half = saturation(&node).await / 2.0;
        let rate = if is_quiet() { half } else { half.min(BUSY) };
        Self { node, what, rate, rounds: 0, memory: None, _turn: turn }
    }

    /// Has something go wrong, and holds the node to what it must do then. `fault` returns
    /// once it is right again.
    pub(crate) async fn round(&mut self, fault: impl AsyncFnOnce()) -> Round {
        self.rounds += 1;
        // After a fault shares decide as well for a while.
        sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        let load = Load::begin(&self.node, self.rate, &format!("round {}", self.rounds));
        sleep(calm()).await;
        let begin = Instant::now();
        fault().await;
        let back = Instant::now();
        let recovery = load.decided_after(back).await;
        let settled = Instant::now();
        sleep(calm()).await;
        let calls = load.end().await;
        let end = Instant::now();
        let until_back = calls.between(began, back);
        let troubled = calls.between(begin, settled);
        let after = calls.between(settled, end);
        let round = Round { calls, until_back, troubled, after, recovery };
        self.check(&round);
        round
    }

    fn check(&mut self, round: &Round) {
        let memory = memory();
        eprintln!(
            "{}: {:.0} calls/s, p99 {:.1} ms ({} ms may be waited), decided again after {:.0} ms, \
             {} tokens forgiven, {memory} KiB",
            self.what,
            self.rate,
            round.troubled.p99().as_secs_f64() * 1e3,
            time_out().as_millis(),
            round.recovery.as_secs_f64() * 1e3,
            round.calls.forgiven(),
        );
        let (late, recovery) = match is_quiet() {
            true => (Duration::from_millis(5), Duration::from_secs(1)),
            false => (Duration::from_millis(500), Duration::from_secs(5)),
        };
        assert!(round.troubled.p99() < time_out() + late, "{:?}", round.troubled.p99());
        assert!(round.recovery < recovery, "{:?}", round.recovery);
        let decided = round.after.by_redis();
        assert!(decided > if is_quiet() { 0.99 } else { 0.5 }, "only {decided} decided afterwards");
        round.keeps_policies();
        assert_eq!(self.node.in_flight(), 0);
        let first = *self.memory.get_or_insert(memory);
        assert!(memory < first + 32 * 1024, "{first} KiB have become {memory} KiB");
    }
}

impl Round {
    /// Each limit does in an outage what it is told to, and nothing else.
    fn keeps_policies(&self) {
        for call in &self.calls.0 {
            let may_be = match (call.limit, call.outcome) {
                (_, CallResult::Redis { is_allowed, .. }) => {
                    is_allowed || call.limit == LimitKind::Hot
                }
                (limit, CallResult::Undecided) => limit == LimitKind::Open,
                (limit, CallResult::Share { .. }) => limit == LimitKind::Local,
                (limit, CallResult::Failed) => matches!(limit, LimitKind::Closed | LimitKind::Hot),
            };
            assert!(may_be, "{call:?}");
        }
        let shares = |is_so: fn(bool) -> bool| {
            let is_share =
                |outcome| matches!(outcome, CallResult::Share { is_allowed } if is_so(is_allowed));
            self.until_back.count(LimitKind::Local, is_share)
        };
        let (asked, passed) = (shares(|_| true), shares(|is_allowed| is_allowed));
        // What its caller had spent before is less than one token of the share.
        let most = asked.min(SHARE as usize);
        assert!((most.saturating_sub(1)..=most).contains(&passed), "{passed} of {asked} passed");
    }

    /// Callers have noticed that Redis was away.
    pub(crate) fn was_noticed(&self) {
        for (limit, outcome) in
            [(LimitKind::Open, CallResult::Undecided), (LimitKind::Closed, CallResult::Failed)]
        {
            assert!(self.troubled.count(limit, |seen| seen == outcome) > 0, "{limit:?}");
        }
        let share = CallResult::Share { is_allowed: true };
        assert!(self.troubled.count(LimitKind::Local, |outcome| outcome == share) > 0);
    }
}

/// How many connections of nodes a server has, once those that ended are gone.
pub(crate) async fn has_connections(server: &Server, wanted: usize) {
    let mut found = 0;
    for _ in 0..1000 {
        let clients = server.command("CLIENT LIST");
        found = clients.lines().filter(|client| client.contains("cmd=evalsha")).count();
        if found == wanted {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{found} connections, not {wanted}");
}

/// The memory that this process has, in KiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
