//! A gate against a slow model: random requests, drops, acquired permits, overrides and reloads.

use std::collections::HashMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use spillgate::ManualClock;
use spillgate_policy::store::PermitId;
use spillgate_policy::{Limit, Mode, Outcome, Policy, Terms};
use spillgate_testing::strategy;

use super::{now, usage};
use crate::common::{TestGate, gate_of, get};

const CALLERS: [&str; 3] = ["203.0.113.1", "203.0.113.2", "203.0.113.3"];

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A request of a caller.
    Open(usize),
    /// The request of this place among the open ones ends.
    Close(usize),
    Acquire(usize, u64),
    Renew(usize),
    Release(usize),
    Wait(u64),
    Override(usize, Option<u64>),
    Reload(Limits),
}

/// A policy: permits per caller, in total, and in shadow. Zero leaves a limit out.
#[derive(Clone, Copy, Debug)]
struct Limits {
    caller: u64,
    total: u64,
    shadow: u64,
}

fn limits() -> impl Strategy<Value = Limits> {
    (0..4_u64, 0..6_u64, 0..3_u64).prop_map(|(caller, total, shadow)| Limits {
        caller,
        total,
        shadow,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_usize).prop_map(Step::Open),
        4 => (0..8_usize).prop_map(Step::Close),
        3 => (0..3_usize, 1..3_u64).prop_map(|(caller, count)| Step::Acquire(caller, count)),
        1 => (0..8_usize).prop_map(Step::Renew),
        2 => (0..8_usize).prop_map(Step::Release),
        2 => (1..20_u64).prop_map(Step::Wait),
        1 => (0..3_usize, proptest::option::of(1..5_u64)).prop_map(|(c, n)| Step::Override(c, n)),
        2 => limits().prop_map(Step::Reload),
    ]
}

impl Limits {
    fn policy(self) -> Policy {
        // `spare` keeps a policy from being empty.
        // Room for few: every removed limit is saved whole.
        let spare = Limit::new("spare", "1000000/s").path("/spare").capacity(10);
        let mut builder = Policy::builder().limit(spare);
        if self.caller > 0 {
            builder = builder.limit(Limit::concurrent("caller", self.caller).per(["ip"]));
        }
        if self.total > 0 {
            builder = builder.limit(Limit::concurrent("total", self.total).per(["global"]));
        }
        if self.shadow > 0 {
            let limit = Limit::concurrent("shadow", self.shadow).per(["global"]);
            builder = builder.limit(limit.mode(Mode::Shadow));
        }
        builder.build().unwrap()
    }
}

/// Who holds what, one entry per holder.
struct Model {
    limits: Limits,
    overrides: HashMap<usize, u64>,
    open: Vec<Request>,
    acquired: Vec<Held>,
    expired: u64,
    now: u64,
}

/// A request in progress: under which limits it is counted.
struct Request {
    caller: usize,
    per_caller: bool,
    total: bool,
    shadow: bool,
}

struct Held {
    caller: usize,
    count: u64,
    expiry: u64,
    id: PermitId,
    is_open: bool,
}

impl Model {
    fn of_caller(&self, caller: usize) -> u64 {
        let open = self.open.iter().filter(|it| it.caller == caller && it.per_caller).count();
        let held = self.acquired.iter().filter(|held| held.is_open && held.caller == caller);
        open as u64 + held.map(|held| held.count).sum::<u64>()
    }

    fn limit_of(&self, caller: usize) -> u64 {
        self.overrides.get(&caller).copied().unwrap_or(self.limits.caller)
    }

    fn fits(&self, caller: usize, count: u64) -> bool {
        self.of_caller(caller) + count <= self.limit_of(caller)
    }

    fn total(&self) -> u64 {
        self.open.iter().filter(|request| request.total).count() as u64
    }

    fn expire(&mut self) {
        for held in &mut self.acquired {
            if held.is_open && held.expiry <= self.now {
                held.is_open = false;
                self.expired += held.count;
            }
        }
    }
}

/// A gate and its model, step by step.
struct Both {
    gate: TestGate,
    clock: ManualClock,
    open: Vec<Outcome<'static>>,
    model: Model,
}

impl Both {
    fn new(limits: Limits) -> Self {
        let (gate, clock) = gate_of(limits.policy());
        let (overrides, open, acquired) = (HashMap::new(), Vec::new(), Vec::new());
        let model = Model { limits, overrides, open, acquired, expired: 0, now: 0 };
        Self { gate, clock, open: Vec::new(), model }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Open(caller) => self.open(caller),
            Step::Close(place) if !self.open.is_empty() => {
                let place = place % self.open.len();
                drop(self.open.remove(place));
                self.model.open.remove(place);
            }
            Step::Acquire(caller, count) => self.acquire(caller, count),
            Step::Renew(place) => self.renew_or_release(place, true),
            Step::Release(place) => self.renew_or_release(place, false),
            Step::Wait(seconds) => {
                self.clock.advance(Duration::from_secs(seconds));
                self.model.now += seconds;
                self.model.expire();
            }
            Step::Override(caller, permits) if self.model.limits.caller > 0 => {
                let values = &[CALLERS[caller]];
                if let Some(permits) = permits {
                    let quota = format!("burst {permits}").parse().unwrap();
                    let terms = Terms::permanent();
                    now(self.gate.set_override("caller", values, quota, terms)).unwrap();
                    self.model.overrides.insert(caller, permits);
                } else {
                    now(self.gate.remove_override("caller", values)).unwrap();
                    self.model.overrides.remove(&caller);
                }
            }
            Step::Reload(limits) => {
                self.gate.replace(limits.policy()).unwrap();
                // Overrides stay, also while their limit is gone.
                self.model.limits = limits;
            }
            Step::Close(_) | Step::Override(..) => {}
        }
        self.compare();
    }

    fn open(&mut self, caller: usize) {
        let outcome = get(CALLERS[caller], "/").through(&self.gate);
        let Limits { caller: per_caller, total, shadow } = self.model.limits;
        let model = &mut self.model;
        let expected =
            (per_caller == 0 || model.fits(caller, 1)) && (total == 0 || model.total() < total);
        assert_eq!(outcome.is_allowed(), expected, "{outcome:?}");
        if expected {
            let (per_caller, total, shadow) = (per_caller > 0, total > 0, shadow > 0);
            model.open.push(Request { caller, per_caller, total, shadow });
            self.open.push(outcome);
        }
    }

    fn acquire(&mut self, caller: usize, count: u64) {
        if self.model.limits.caller == 0 {
            return;
        }
        let ttl = Some(Duration::from_secs(10));
        let values = [CALLERS[caller]];
        let id = now(self.gate.acquire("caller", &values, count, ttl)).unwrap().id();
        assert_eq!(id.is_some(), self.model.fits(caller, count));
        let expiry = self.model.now + 10;
        let held = id.map(|id| Held { caller, count, expiry, id, is_open: true });
        self.model.acquired.extend(held);
    }

    fn renew_or_release(&mut self, place: usize, renews: bool) {
        if self.model.acquired.is_empty() {
            return;
        }
        let place = place % self.model.acquired.len();
        let expiry = self.model.now + 5;
        let held = &mut self.model.acquired[place];
        let done = match renews {
            true => now(self.gate.renew(held.id, Duration::from_secs(5))),
            false => now(self.gate.release(held.id)),
        };
        assert_eq!(done.unwrap(), held.is_open);
        held.expiry = expiry;
        held.is_open &= renews;
    }

    fn compare(&self) {
        let Limits { caller, total, shadow } = self.model.limits;
        let count = |counts: fn(&Request) -> bool| {
            self.model.open.iter().filter(|request| counts(request)).count() as u64
        };
        if caller > 0 {
            let expected: u64 = (0..3).map(|caller| self.model.of_caller(caller)).sum();
            let usage = usage(&self.gate, "caller");
            assert_eq!(usage.held, expected);
            // A limit that was removed while nobody held anything has counted from zero since.
            assert!(usage.expired <= self.model.expired, "{usage:?}");
        }
        if total > 0 {
            assert_eq!(usage(&self.gate, "total").held, count(|request| request.total));
        }
        if shadow > 0 {
            assert_eq!(usage(&self.gate, "shadow").held, count(|request| request.shadow));
        }
    }
}

proptest! {
    #![proptest_config(strategy::cases(256))]

    #[test]
    fn a_gate_holds_what_the_model_holds_and_everything_comes_back(
        limits in limits(),
        steps in vec(step(), 1..60),
    ) {
        assert_alike(limits, steps);
    }
}

#[test]
fn a_limit_that_was_removed_and_is_back_has_its_override() {
    let [none, one, two] = [0, 1, 2].map(|caller| Limits { caller, total: 0, shadow: 0 });
    let reloads = [Step::Reload(one), Step::Override(1, Some(1)), Step::Reload(none)];
    let opens = [Step::Reload(two), Step::Open(1), Step::Open(1)];
    assert_alike(none, reloads.into_iter().chain(opens));
}

fn assert_alike(limits: Limits, steps: impl IntoIterator<Item = Step>) {
    let mut both = Both::new(limits);
    steps.into_iter().for_each(|step| both.step(step));
    both.open.clear();
    both.model.open.clear();
    both.step(Step::Wait(1_000));
    both.step(Step::Reload(Limits { caller: 1, total: 1, shadow: 1 }));
    for limit in ["caller", "total", "shadow"] {
        assert_eq!(usage(&both.gate, limit).held, 0);
    }
}
