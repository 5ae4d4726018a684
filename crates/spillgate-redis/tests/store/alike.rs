//! Whatever happens to a caller, the store answers as one in memory does.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use http::Request;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use spillgate::{AlgorithmKind, Quota};
use spillgate_policy::store::{Memory, Store};
use spillgate_policy::{Gate, Policy, Receipt, RequestView, Terms};
use spillgate_redis::Settings;
use spillgate_testing::strategy;
use tokio::runtime::Builder;

use super::fake::Fake;
use super::tiers::policy;

#[derive(Clone, Debug)]
enum Event {
    /// A call in one of three tiers.
    Call(usize),
    /// Some call turns out to cost so much.
    Settle(usize, u64),
    Override(Option<&'static str>),
    Reset,
    Pass(u64),
}

/// What is seen of an event: whether a call passes, what is left of it or owed after it is settled, and
/// what was not charged.
type Observed = (bool, u64, u64);

const TIERS: [&str; 3] = ["", "silver", "gold"];

fn events() -> impl Strategy<Value = Event> {
    let quotas = prop_oneof![
        Just(None),
        Just(Some("1 per 10 s")),
        Just(Some("4 per 10 s")),
        Just(Some("20 per 10 s")),
        Just(Some("9 per 3 s")),
    ];
    prop_oneof![
        10 => (0..3_usize).prop_map(Event::Call),
        3 => (any::<usize>(), prop_oneof![0..3_u64, 0..40_u64]).prop_map(|(i, n)| Event::Settle(i, n)),
        2 => quotas.prop_map(Event::Override),
        1 => Just(Event::Reset),
        4 => prop_oneof![0..3_000_u64, 0..30_000_u64].prop_map(Event::Pass),
    ]
}

/// A gate, and what was spent under it and not settled yet.
struct Subject<S: Store> {
    gate: Gate<S>,
    open: Vec<Receipt>,
    had_override: bool,
}

impl<S: Store> Subject<S> {
    fn new(gate: Gate<S>) -> Self {
        Self { gate, open: Vec::new(), had_override: false }
    }

    async fn call(&mut self, tier: &str) -> Observed {
        let request = Request::builder().header("x-tier", tier).header("x-team", "t");
        let parts = request.body(()).unwrap().into_parts().0;
        let asked = RequestView::from_parts(&parts, Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
        let mut outcome = self.gate.decide(&asked).await.unwrap();
        self.open.extend(outcome.receipt());
        let left = outcome.limits().next().unwrap().decision().remaining();
        (outcome.is_allowed(), left, 0)
    }

    async fn happen(&mut self, event: &Event) -> Observed {
        match event {
            Event::Call(tier) => return self.call(TIERS[*tier]).await,
            // A settlement that changes nothing is rounded in memory; and there an override keeps what
            // was spent under several quotas apart for as long as it lasts, so that less is given back.
            Event::Settle(_, 1) => {}
            Event::Settle(_, 0) if self.had_override => {}
            Event::Settle(index, actual) if !self.open.is_empty() => {
                let receipt = self.open.swap_remove(index % self.open.len());
                let settled = self.gate.settle_actual(receipt, *actual).await.unwrap();
                let settled = settled.settled.unwrap();
                // What is left to who owes nothing depends on a tier that nobody has called in.
                return (true, settled.left.owed(), settled.uncharged);
            }
            Event::Override(quota) => {
                let quota: Option<Quota> = quota.map(|quota| quota.parse().unwrap());
                self.had_override |= quota.is_some();
                match quota {
                    Some(quota) => {
                        let terms = Terms::permanent();
                        self.gate.set_override("l", &["t"], quota, terms).await.unwrap();
                    }
                    None => drop(self.gate.remove_override("l", &["t"]).await.unwrap()),
                }
            }
            Event::Reset => self.gate.reset_limit("l", &["t"]).await.unwrap(),
            Event::Settle(..) | Event::Pass(_) => {}
        }
        (true, 0, 0)
    }
}

async fn compare(kind: AlgorithmKind, events: &[Event]) -> Result<(), TestCaseError> {
    let redis = Fake::new();
    let tiers = policy(kind.name(), ["5 per 10 s", "8 per 10 s", "12 per 10 s"]);
    // What is remembered is not told to the nanosecond.
    let settings = Settings::default().nodes(1.try_into().unwrap()).remembered(0);
    let mut shared = Subject::new(redis.node_with(&tiers, &settings));
    let memory = Memory::new(redis.clock());
    let parsed = Policy::from_toml(&tiers).unwrap();
    let mut alone = Subject::new(Gate::with_store(parsed, memory).unwrap());
    for (place, event) in events.iter().enumerate() {
        // A debt right after a change of periods may be taken for one that is told by a refill.
        if kind == AlgorithmKind::IntervalBucket && matches!(event, Event::Override(_)) {
            continue;
        }
        if let Event::Pass(millis) = event {
            tokio::time::advance(Duration::from_millis(*millis)).await;
        }
        let left = alone.gate.peek_limit("l", &["t"], 0).await.unwrap();
        if left.owed() == 0 {
            // Whoever owes nothing is in no tier: which quota is to count a debt is left open.
            (shared.open, alone.open) = (Vec::new(), Vec::new());
        }
        let (seen, expected) = (shared.happen(event).await, alone.happen(event).await);
        prop_assert_eq!(seen, expected, "{} after {}: {:?}", kind, place, event);
    }
    Ok(())
}

#[test]
fn tiers_overrides_and_settling_are_as_in_memory() {
    for kind in AlgorithmKind::ALL {
        let mut runner = TestRunner::new(strategy::cases(100));
        let outcome = runner.run(&vec(events(), 1..40), |events| {
            let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.unwrap().block_on(compare(kind, &events))
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    }
}
