//! Commands that have to be waited for.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{OneLimit, Talk};
use crate::protocol::resp::{Checked, Checks, Endpoint, Throttle};
use spillgate::{KeyedState, ManualClock, WhenFull};

/// A policy like [`OneLimit`] that is far away, and answers the later the sooner it was asked.
struct Far;

const TRIP: Duration = Duration::from_millis(100);

impl Checks for Far {
    type Error = String;

    async fn check_limit(&self, limit: &str, parts: &[&str], cost: u64) -> Result<Checked, String> {
        sleep(TRIP - Duration::from_millis(cost)).await;
        OneLimit.check_limit(limit, parts, cost).await
    }

    fn at_once(&self) -> usize {
        64
    }
}

fn far() -> Arc<Endpoint<Far, ManualClock>> {
    let clock = ManualClock::default();
    let throttle = Throttle::with(1000, WhenFull::Evict, KeyedState::new(), clock);
    Arc::new(Endpoint::new(throttle.unwrap(), Far))
}

fn reply(cost: u64) -> String {
    format!("*5\r\n:0\r\n:5\r\n:{}\r\n:-1\r\n:{cost}\r\n", 5 - cost)
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_takes_about_as_long_as_one_of_its_commands() {
    let mut talk = Talk::with(&far());
    let costs = || (0..33).map(|number| number % 5 + 1);
    let commands: String = costs().map(|cost| format!("SG.CHECK api bob {cost}\r\n")).collect();
    let begin = Instant::now();
    talk.send(commands).await;
    for cost in costs() {
        talk.expect(&reply(cost)).await;
    }
    // The first, and twice sixteen of the others.
    assert!(begin.elapsed() <= 3 * TRIP, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_stands_between_decisions_keeps_its_place() {
    let mut talk = Talk::with(&far());
    talk.send("PING\r\nSG.CHECK api bob 1\r\nSG.CHECK api bob 2\r\nSG.CHECK api\r\n").await;
    talk.send("MULTI\r\nSG.CHECK api bob 1\r\nSG.CHECK api bob 3\r\nPING\r\nEXEC\r\n").await;
    talk.send("SG.CHECK api bob 2\r\nQUIT\r\nSG.CHECK api bob 1\r\n").await;
    let arity = "-ERR wrong number of arguments for 'sg.check' command\r\n";
    let queued = "+QUEUED\r\n".repeat(3);
    let expected = [
        "+PONG\r\n",
        &reply(1),
        &reply(2),
        arity,
        "+OK\r\n",
        &queued,
        "*3\r\n",
        &reply(1),
        &reply(3),
        "+PONG\r\n",
        &reply(2),
        "+OK\r\n",
    ];
    assert_eq!(talk.rest().await, expected.concat());
}
