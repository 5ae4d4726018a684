//! Calls are decided as by a simple model, in which a call is spent whole or not at all.

use std::collections::HashMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use spillgate_policy::Descriptor;

use super::{decide, quota};
use crate::common::gate;

const POLICY: &str = r#"
[[limit]]
name = "user"
match = { domain = "edge", descriptor = { user = "*" } }
quota = "1/s burst 5"

[[limit]]
name = "double"
match = { domain = "edge", descriptor = { user = "*" } }
quota = "1/s burst 12"
cost = 2

[[limit]]
name = "in-all"
match = { domain = "edge", descriptor = { user = "*" } }
per = "global"
quota = "1/s burst 7"

[[limit]]
name = "watched"
match = { domain = "edge", descriptor = { user = "*" } }
quota = "1/s burst 3"
mode = "shadow"
"#;

/// Each limit: its burst, what a hit costs, whether all users share it, and whether it enforces.
const LIMITS: [(&str, u64, u64, bool, bool); 4] = [
    ("user", 5, 1, false, true),
    ("double", 12, 2, false, true),
    ("in-all", 7, 1, true, true),
    ("watched", 3, 1, false, false),
];

const USERS: [&str; 3] = ["7", "8", "9"];
const CALL_BURST: u64 = 4;

#[derive(Clone, Debug)]
struct Asked {
    user: usize,
    hits: u64,
    gives_back: bool,
    has_quota: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    let gives_back = prop::bool::weighted(0.2);
    let has_quota = prop::bool::weighted(0.3);
    (0..USERS.len(), 0..4_u64, gives_back, has_quota)
        .prop_map(|(user, hits, gives_back, has_quota)| Asked { user, hits, gives_back, has_quota })
}

/// What every bucket owes, in tokens: a token comes back each second.
#[derive(Clone, Default)]
struct Model(HashMap<(&'static str, usize), u64>);

impl Model {
    fn pass(&mut self, seconds: u64) {
        self.0.values_mut().for_each(|owed| *owed = owed.saturating_sub(seconds));
    }

    fn owed(&mut self, limit: &'static str, user: usize) -> &mut u64 {
        self.0.entry((limit, user)).or_default()
    }

    fn spend(&mut self, limit: &'static str, user: usize, burst: u64, cost: u64) -> bool {
        let owed = self.owed(limit, user);
        let passes = cost == 0 || *owed + cost <= burst;
        if passes {
            *owed += cost;
        }
        passes
    }

    /// Decides about a call: all that enforces, then what is in shadow, then what is given back.
    fn call(&mut self, asked: &[Asked]) -> bool {
        let before = self.clone();
        let spends = |shadow: bool, back: bool| {
            asked.iter().filter(move |asked| asked.gives_back == back).flat_map(move |asked| {
                let limits = LIMITS.into_iter().filter(|_| !asked.has_quota);
                let limits = limits.filter(move |limit| back || limit.4 != shadow);
                let limits = limits.map(|(name, burst, cost, is_shared, _)| {
                    (name, if is_shared { 0 } else { asked.user }, burst, cost * asked.hits)
                });
                let by_call = ("call", asked.user, CALL_BURST, asked.hits);
                limits.chain((asked.has_quota && !shadow).then_some(by_call))
            })
        };
        for (limit, user, burst, cost) in spends(false, false) {
            if !self.spend(limit, user, burst, cost) {
                *self = before;
                return false;
            }
        }
        for (limit, user, burst, cost) in spends(true, false) {
            self.spend(limit, user, burst, cost);
        }
        for (limit, user, _, cost) in spends(false, true) {
            let owed = self.owed(limit, user);
            *owed = owed.saturating_sub(cost);
        }
        true
    }
}

proptest! {
    #[test]
    fn a_call_is_spent_whole_or_not_at_all(
        calls in vec((0..4_u64, vec(asked(), 1..4)), 1..40)
    ) {
        let (gate, clock) = gate(POLICY);
        let mut model = Model::default();
        for (seconds, asked) in calls {
            clock.advance(Duration::from_secs(seconds));
            model.pass(seconds);
            let entries: Vec<_> = asked.iter().map(|asked| [("user", USERS[asked.user])]).collect();
            let descriptors = asked.iter().zip(&entries).map(|(asked, entries)| Descriptor {
                entries,
                hits: asked.hits,
                gives_back: asked.gives_back,
                quota: asked.has_quota.then(|| quota(&format!("1/s burst {CALL_BURST}"))),
            });
            let descriptors: Vec<_> = descriptors.collect();
            let outcome = decide(&gate, &descriptors);
            prop_assert_eq!(outcome.is_allowed(), model.call(&asked), "{:?}", asked);
            prop_assert_eq!(
                outcome.descriptors().any(|state| state.is_denied()),
                !outcome.is_allowed()
            );
            for (user, name) in USERS.iter().enumerate() {
                let entries = [("user", *name)];
                let look = Descriptor { hits: 0, ..Descriptor::new(&entries) };
                let own = Some(quota(&format!("1/s burst {CALL_BURST}")));
                let looked = decide(&gate, &[look, Descriptor { quota: own, ..look }]);
                for limit in looked.descriptors().flat_map(|state| state.limits()) {
                    let known = LIMITS.iter().find(|(name, ..)| *name == limit.name());
                    let (name, burst, user) = match known {
                        Some((name, burst, _, is_shared, _)) => {
                            (*name, *burst, if *is_shared { 0 } else { user })
                        }
                        None => ("call", CALL_BURST, user),
                    };
                    let left = burst - *model.owed(name, user);
                    prop_assert_eq!(limit.decision().remaining(), left, "{}", name);
                }
            }
        }
    }
}
