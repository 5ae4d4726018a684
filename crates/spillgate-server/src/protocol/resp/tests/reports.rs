//! `SG.REPORT`, and permits of adaptive limits.

use std::sync::Arc;
use std::time::Duration;

use spillgate::ManualClock;
use spillgate_enforce::Enforcer;
use spillgate_policy::store::Memory;
use spillgate_policy::{AdaptiveState, Gate, Policy};

use super::{Talk, Tested};
use crate::protocol::resp::Endpoint;

const POLICY: &str = "
    limit = [
        { name = 'upstream', adaptive = { controller = 'errors' } },
        { name = 'jobs', by-name = true, adaptive = { controller = 'aimd', min = 1, max = 2 } },
        { name = 'plain', quota = '1/h', per = 'ip', by-name = true },
    ]";

fn endpoint() -> (Arc<Tested>, ManualClock) {
    let clock = ManualClock::default();
    let gate = Gate::with_store(Policy::from_toml(POLICY).unwrap(), Memory::new(clock.clone()));
    (Arc::new(Endpoint::new(Arc::new(Enforcer::new(gate.unwrap())))), clock)
}

fn state(endpoint: &Tested, limit: &str) -> AdaptiveState {
    let states = endpoint.enforcer.gate().adaptive_states();
    states.into_iter().find(|state| *state.limit == *limit).unwrap()
}

#[tokio::test]
async fn reported_failures_lower_a_limit_and_successes_raise_it_again() {
    let (endpoint, clock) = endpoint();
    let mut talk = Talk::with(&endpoint);
    for _ in 0..10 {
        talk.ask("SG.REPORT upstream 0.02 OK COUNT 20", "+OK\r\n").await;
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(state(&endpoint, "upstream").status.limit, 1.0);
    for _ in 0..10 {
        talk.ask("sg.report upstream 5 failed count 20", "+OK\r\n").await;
        clock.advance(Duration::from_secs(1));
    }
    let lowered = state(&endpoint, "upstream").status.limit;
    assert!(lowered < 0.9, "{lowered}");
    for _ in 0..60 {
        talk.ask("SG.REPORT upstream 0.02 OK COUNT 20", "+OK\r\n").await;
        clock.advance(Duration::from_secs(1));
    }
    let raised = state(&endpoint, "upstream").status.limit;
    assert!(raised > lowered, "{lowered} {raised}");
}

#[tokio::test]
async fn permits_are_acquired_and_released_with_an_ending() {
    let (endpoint, clock) = endpoint();
    let mut talk = Talk::with(&endpoint);
    let mut held = Vec::new();
    for left in [1, 0] {
        talk.send("SG.ACQUIRE jobs PARTS 0\r\n").await;
        talk.expect("*4\r\n$64\r\n").await;
        held.push(talk.take(64).await);
        talk.expect(&format!("\r\n:2\r\n:{left}\r\n:30000\r\n")).await;
    }
    talk.ask("SG.ACQUIRE jobs PARTS 0", "*4\r\n$-1\r\n:2\r\n:0\r\n:1000\r\n").await;
    talk.ask("SG.CHECK jobs PARTS 0", "*5\r\n:1\r\n:2\r\n:0\r\n:1\r\n:-1\r\n").await;
    clock.advance(Duration::from_millis(20));
    talk.ask(&format!("SG.RELEASE {} FINE", held[0]), "-ERR syntax error\r\n").await;
    talk.ask(&format!("SG.RELEASE {} OK", held[0]), ":1\r\n").await;
    talk.ask(&format!("SG.RELEASE {} FAILED", held[0]), ":0\r\n").await;
    assert_eq!(state(&endpoint, "jobs").status.in_flight, 1);
    talk.ask(&format!("SG.RELEASE {} failed", held[1]), ":1\r\n").await;
    assert_eq!(state(&endpoint, "jobs").status.in_flight, 0);
}

#[tokio::test]
async fn what_cannot_be_reported_is_refused_with_the_remedy() {
    let (endpoint, clock) = endpoint();
    let mut talk = Talk::with(&endpoint);
    for (line, says) in [
        ("SG.REPORT upstream 0.1 FINE", "syntax error"),
        ("SG.REPORT upstream 0.1 OK COUNT", "syntax error"),
        ("SG.REPORT upstream 0.1 OK TIMES 5", "syntax error"),
        ("SG.REPORT upstream 0.1", "wrong number of arguments for 'sg.report' command"),
        ("SG.REPORT upstream soon OK", "a number of seconds such as 0.012, not 'soon'"),
        ("SG.REPORT upstream -1 OK", "use seconds from 0 to 3600"),
        ("SG.REPORT upstream NaN OK", "use seconds from 0 to 3600"),
        ("SG.REPORT upstream inf OK", "use seconds from 0 to 3600"),
        ("SG.REPORT upstream 3601 OK", "use seconds from 0 to 3600"),
        ("SG.REPORT upstream 1 OK COUNT 0", "COUNT must be an integer from 1"),
        ("SG.REPORT upstream 1 OK COUNT 10001", "use a count from 1 to 10000"),
        ("SG.REPORT plain 1 FAILED", "plain"),
        ("SG.REPORT upstraem 1 FAILED", "did you mean \"upstream\"?"),
    ] {
        talk.send(format!("{line}\r\n")).await;
        talk.expect("-ERR ").await;
        let reply = talk.line().await;
        assert!(reply.contains(says), "{line}: {reply}");
    }
    clock.advance(Duration::from_secs(2));
    assert_eq!(state(&endpoint, "upstream").status.changes, 0);
}
