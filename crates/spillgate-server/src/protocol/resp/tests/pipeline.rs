//! Commands that have to be waited for.

use std::sync::Arc;
use std::time::Duration;

use spillgate::{Decision, ManualClock, Quota, Settled, Timestamp, WhenFull};
use spillgate_policy::store::{
    BanRule, BanStart, LimitSpec, Memory, MemoryLimits, PermitId, Permits, Settlement, Spend,
    Store, StrikeCall, Usage,
};
use spillgate_policy::{Error, Key};
use tokio::time::{Instant, sleep};

use super::{Talk, endpoint_on};
use crate::protocol::resp::Endpoint;

/// A store that is far away, and answers the later the less is asked for.
struct Far(Memory<ManualClock>);

const TRIP: Duration = Duration::from_millis(100);

type Limits = MemoryLimits<ManualClock>;

impl Store for Far {
    type Limits = Limits;

    fn is_in_process(&self) -> bool {
        false
    }

    fn open(&self, limits: &[LimitSpec]) -> Result<Limits, Error> {
        self.0.open(limits)
    }

    fn reopen(&self, old: &Limits, limits: &[LimitSpec]) -> Result<Limits, Error> {
        self.0.reopen(old, limits)
    }

    async fn decide(&self, limits: &Limits, spends: &mut [Spend]) -> Result<(), Error> {
        sleep(TRIP - Duration::from_millis(spends[0].cost)).await;
        self.0.decide(limits, spends).await
    }

    fn decide_now(&self, _: &Limits, _: &mut [Spend]) -> Option<Result<(), Error>> {
        None
    }

    async fn peek(&self, limits: &Limits, spend: &Spend) -> Result<Decision, Error> {
        self.0.peek(limits, spend).await
    }

    async fn settle(&self, limits: &Limits, spend: &Spend, actual: u64) -> Result<Settled, Error> {
        self.0.settle(limits, spend, actual).await
    }

    async fn deposit(
        &self,
        limits: &Limits,
        spend: &Spend,
        id: u128,
        lifetime: Duration,
    ) -> Result<bool, Error> {
        self.0.deposit(limits, spend, id, lifetime).await
    }

    async fn settle_deposit(
        &self,
        limits: &Limits,
        id: u128,
        actual: u64,
    ) -> Result<Option<Settlement>, Error> {
        self.0.settle_deposit(limits, id, actual).await
    }

    fn cancel(&self, limits: &Limits, spend: Spend) {
        self.0.cancel(limits, spend);
    }

    async fn reset(&self, limits: &Limits, limit: usize, key: &Key) -> Result<(), Error> {
        self.0.reset(limits, limit, key).await
    }

    async fn set_override(
        &self,
        limits: &Limits,
        limit: usize,
        key: &Key,
        quota: Option<Quota>,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.0.set_override(limits, limit, key, quota, until).await
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn hold(
        &self,
        limits: &Limits,
        spends: &mut [Spend],
        permits: &mut Permits,
    ) -> Result<(), Error> {
        self.0.hold(limits, spends, permits).await
    }

    fn hold_now(&self, _: &Limits, _: &mut [Spend], _: &mut Permits) -> Option<Result<(), Error>> {
        None
    }

    async fn acquire(
        &self,
        limits: &Limits,
        spend: &Spend,
        ttl: Duration,
    ) -> Result<(Decision, Option<PermitId>), Error> {
        self.0.acquire(limits, spend, ttl).await
    }

    async fn renew(&self, limits: &Limits, id: PermitId, ttl: Duration) -> Result<bool, Error> {
        self.0.renew(limits, id, ttl).await
    }

    async fn release(&self, limits: &Limits, id: PermitId) -> Result<bool, Error> {
        self.0.release(limits, id).await
    }

    async fn strike(
        &self,
        limits: &Limits,
        limit: usize,
        key: &Key,
        rule: &BanRule,
        call: StrikeCall,
    ) -> Result<Option<BanStart>, Error> {
        self.0.strike(limits, limit, key, rule, call).await
    }

    async fn forgive(&self, limits: &Limits, limit: usize, key: &Key) -> Result<(), Error> {
        self.0.forgive(limits, limit, key).await
    }

    fn usage(&self, limits: &Limits, limit: usize) -> Option<Usage> {
        self.0.usage(limits, limit)
    }
}

fn far() -> Arc<Endpoint<Far>> {
    Arc::new(endpoint_on(Far(Memory::new(ManualClock::default())), 1000, WhenFull::Evict))
}

fn reply(cost: u64) -> String {
    format!("*5\r\n:0\r\n:5\r\n:{}\r\n:-1\r\n:{cost}\r\n", 5 - cost)
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_takes_about_as_long_as_one_of_its_commands() {
    let mut talk = Talk::with(&far());
    let costs = || (0..33).map(|number| number % 5 + 1);
    let command = |(number, cost)| format!("SG.CHECK api bob{number} {cost}\r\n");
    let commands: String = costs().enumerate().map(command).collect();
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
    talk.send("PING\r\nSG.CHECK api bob1 1\r\nSG.CHECK api bob2 2\r\nSG.CHECK api\r\n").await;
    talk.send("MULTI\r\nSG.CHECK api bob3 1\r\nSG.CHECK api bob4 3\r\nPING\r\nEXEC\r\n").await;
    talk.send("SG.CHECK api bob5 2\r\nQUIT\r\nSG.CHECK api bob6 1\r\n").await;
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
