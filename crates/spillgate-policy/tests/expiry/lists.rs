use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use spillgate::{Clock, ManualClock, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Answer, Gate, ListKind, Origin, Policy, Terms};
use spillgate_testing::strategy;

use super::gate;
use super::model::{ENTRIES, Entries, Model, Seconds, kind};
use crate::common::{TestGate, at_once, get};

fn at(seconds: Seconds) -> Timestamp {
    Timestamp::from_secs(seconds)
}

#[derive(Clone, Debug)]
enum Event {
    List(bool, &'static str, Option<Seconds>),
    Unlist(bool, &'static str),
    Advance(Seconds),
    Replace(Entries),
    Restart {
        down: Seconds,
        clock: Seconds,
    },
    /// What another node has made of an entry: `None` undoes, zero has ended.
    Apply(bool, &'static str, Option<Seconds>),
}

fn event() -> impl Strategy<Value = Event> {
    let entry = || prop::sample::select(&ENTRIES[..]);
    let ttl = || prop::option::weighted(0.7, 1..12_u64);
    let file = (any::<bool>(), entry(), prop::option::of(0..40_u64));
    let file = prop::collection::vec(file, 0..6).prop_map(|entries| {
        let entries = entries.into_iter().map(|(block, entry, until)| ((block, entry), until));
        Event::Replace(entries.collect())
    });
    prop_oneof![
        4 => (any::<bool>(), entry(), ttl()).prop_map(|(block, entry, ttl)| Event::List(block, entry, ttl)),
        2 => (any::<bool>(), entry()).prop_map(|(block, entry)| Event::Unlist(block, entry)),
        4 => (0..6_u64).prop_map(Event::Advance),
        1 => file,
        1 => (0..9_u64, 0..30_u64).prop_map(|(down, clock)| Event::Restart { down, clock }),
        1 => (any::<bool>(), entry(), prop::option::of(0..9_u64))
            .prop_map(|(block, entry, ttl)| Event::Apply(block, entry, ttl)),
    ]
}

struct Scene {
    gate: TestGate,
    clock: ManualClock,
    model: Model,
}

impl Scene {
    fn new() -> Self {
        let model = Model::default();
        let (gate, clock) = gate(&model.toml());
        Self { gate, clock, model }
    }

    fn act(&mut self, event: &Event) {
        let now = self.model.now;
        match event {
            Event::List(block, entry, ttl) => {
                let until = ttl.map(|ttl| now + ttl);
                let terms = until.map_or_else(Terms::permanent, |until| Terms::until(at(until)));
                let changed = at_once(self.gate.list(kind(*block), entry, terms)).unwrap();
                assert_eq!(changed, self.model.list((*block, entry), until));
            }
            Event::Unlist(block, entry) => {
                let changed = at_once(self.gate.unlist(kind(*block), entry)).unwrap();
                assert_eq!(changed, self.model.unlist((*block, entry)));
            }
            Event::Advance(seconds) => {
                self.clock.advance(Duration::from_secs(*seconds));
                self.model.now += seconds;
            }
            Event::Replace(file) => {
                self.model.file.clone_from(file);
                self.gate.replace(Policy::from_toml(&self.model.toml()).unwrap()).unwrap();
            }
            Event::Restart { down, clock } => {
                let saved = self.gate.save();
                self.clock = ManualClock::new(at(*clock));
                let policy = Policy::from_toml(&self.model.toml()).unwrap();
                let store = Memory::new(self.clock.clone()).with_seed(self.gate.store().seed());
                self.gate = Gate::with_store(policy, store).unwrap();
                self.gate.restore(saved, at(now + down)).unwrap();
                self.model.restart(*down, *clock);
            }
            Event::Apply(block, entry, ttl) => {
                let key = format!("[\"list\",\"{}\",{entry:?}]", kind(*block).name());
                let until = ttl.map(|ttl| at(now + ttl));
                let value = ttl.map(|_| "{}".to_owned());
                let edit = spillgate_policy::store::Edit::new(key, value, until);
                self.gate.apply(&edit).unwrap();
                self.gate.apply(&edit).unwrap();
                match ttl.filter(|ttl| *ttl > 0) {
                    Some(ttl) => self.model.edits.insert((*block, entry), Some(Some(now + ttl))),
                    None => self.model.edits.remove(&(*block, *entry)),
                };
            }
        }
    }

    fn check(&self) {
        for is_block in [false, true] {
            let listed = self.gate.listed(kind(is_block)).into_iter().map(|it| {
                let until = it.until.map(|until| until.as_nanos() / 1_000_000_000);
                (it.entry, until, it.origin == Origin::RunTime)
            });
            assert_eq!(listed.collect::<BTreeSet<_>>(), self.model.listed(is_block));
        }
        for address in ["10.1.1.1", "10.1.1.2", "10.1.2.1", "10.2.0.1", "11.0.0.1"] {
            for (key, user) in [("k0", "u0"), ("k1", "u0"), ("k0", "u1")] {
                let holds = |is_block| self.model.holds(is_block, address, key, user);
                let expected = match (holds(true), holds(false)) {
                    (true, _) => ("block", Answer::Blocked),
                    (false, true) => ("allow", Answer::Allowed),
                    (false, false) => ("", Answer::Allowed),
                };
                let call = get(address, "/").with("x-api-key", key).with("x-user-id", user);
                assert_eq!(call.through(&self.gate).answer(), expected.1);
                let decided = at_once(self.gate.decide(&call.request())).unwrap();
                assert_eq!(decided.answer(), expected.1);
                let met = decided.limits().count();
                assert_eq!(met, usize::from(expected.0.is_empty()), "{address} {key} {user}");
                let explained = at_once(self.gate.explain(&call.request())).unwrap();
                assert_eq!(explained.listed.unwrap_or_default(), expected.0);
            }
        }
    }
}

proptest! {
    #![proptest_config(strategy::cases(192))]

    #[test]
    fn lists_are_as_a_model_without_cleverness_has_them(
        events in prop::collection::vec(event(), 1..24),
    ) {
        let mut scene = Scene::new();
        for event in &events {
            scene.act(event);
            scene.check();
        }
    }
}

#[test]
fn an_expired_range_uncovers_the_wider_one_to_the_nanosecond() {
    let (gate, clock) = gate(
        "block = ['10.0.0.0/8']\nallow = ['10.1.0.0/16']\n[[limit]]\nname = 'l'\nquota = '1/h'",
    );
    let call = get("10.1.1.1", "/");
    let answer = || call.through(&gate).answer();
    at_once(gate.unlist(ListKind::Block, "10.0.0.0/8")).unwrap();
    assert_eq!((answer(), answer()), (Answer::Allowed, Answer::Allowed), "the allow list holds");
    let until = clock.now() + Duration::from_secs(60);
    at_once(gate.list(ListKind::Block, "10.1.1.0/24", Terms::until(until))).unwrap();
    assert_eq!(answer(), Answer::Blocked);
    clock.set(Timestamp::from_nanos(until.as_nanos() - 1));
    assert_eq!(answer(), Answer::Blocked);
    clock.set(until);
    assert_eq!((answer(), answer()), (Answer::Allowed, Answer::Allowed), "the allow list again");
    // Of one list, the wider range.
    let until = until + Duration::from_secs(60);
    at_once(gate.list(ListKind::Block, "10.1.1.1", Terms::until(until))).unwrap();
    at_once(gate.list(ListKind::Block, "10.0.0.0/8", Terms::permanent())).unwrap();
    clock.set(until);
    assert_eq!(answer(), Answer::Blocked);
    let explained = call.explained(&gate);
    assert_eq!(explained.listed_range.as_deref(), Some("10.0.0.0/8"));
}

#[test]
fn a_request_on_no_list_takes_nothing_out() {
    let (gate, clock) = gate("[[limit]]\nname = 'l'\nquota = '1000/s'");
    let until = clock.now() + Duration::from_secs(1);
    at_once(gate.list(ListKind::Block, "10.0.0.0/8", Terms::until(until))).unwrap();
    clock.set(until + Duration::from_secs(1));
    assert!(get("11.0.0.1", "/").through(&gate).is_allowed());
    assert!(get("10.0.0.1", "/").through(&gate).is_allowed());
    assert!(gate.edits().is_empty() && gate.listed(ListKind::Block).is_empty());
}

#[test]
fn adding_again_replaces_expiry_and_comment() {
    let (gate, clock) = gate("[[limit]]\nname = 'l'\nquota = '1000/s'");
    let after = |seconds| Terms::until(clock.now() + Duration::from_secs(seconds));
    let list = |terms| at_once(gate.list(ListKind::Block, "10.0.0.1", terms)).unwrap();
    let shown = || gate.listed_entry(ListKind::Block, "10.0.0.1").unwrap();
    for terms in [
        after(60),
        after(7200),
        after(5),
        after(5).with_comment("why"),
        Terms::permanent().with_comment("because"),
        Terms::permanent(),
    ] {
        assert!(list(terms.clone()));
        assert!(!list(terms.clone()), "it is so already");
        let shown = shown().unwrap();
        assert_eq!((shown.until, shown.comment), (terms.until, terms.comment));
    }
    clock.advance(Duration::from_secs(9999));
    assert!(shown().is_some(), "it is permanent now");
    assert!(at_once(gate.unlist(ListKind::Block, "10.0.0.1")).unwrap());
    assert_eq!(shown(), None);
}

#[test]
fn what_cannot_be_kept_is_refused_with_the_reason() {
    let (gate, clock) = gate("[[limit]]\nname = 'l'\nquota = '1000/s'");
    clock.set(at(100));
    for (entry, terms, why) in [
        ("10.0.0.1", Terms::until(at(100)), "the expiry has passed"),
        (
            "10.0.0.1",
            Terms::permanent().with_comment("x".repeat(257)),
            "257 bytes; write at most 256",
        ),
        ("10.0.0.1", Terms::permanent().with_comment("a\nb"), "a control character"),
        ("somebody", Terms::permanent(), "write an address"),
    ] {
        let error = at_once(gate.list(ListKind::Block, entry, terms)).unwrap_err();
        assert!(error.is_unknown() && error.to_string().contains(why), "{error}");
    }
    assert!(gate.listed(ListKind::Block).is_empty());
    assert!(gate.listed_entry(ListKind::Block, "somebody").is_err());
}
