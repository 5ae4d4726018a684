//! What is said of two policies agrees with what a gate does when one takes the place of the other.

use std::collections::BTreeSet;

use proptest::prelude::*;
use spillgate_policy::{Changes, LimitCheck, Policy};

use crate::common::{TestGate, at_once, gate_of};

/// Keys of a limit with some values, of which no two mean the same. The first is the default.
const KEYS: &[(&str, &[&str])] = &[
    ("quota", &["'100/h'", "'200/h'", "'100/h burst 50'", "'100/min'"]),
    ("algorithm", &["'token-bucket'", "'interval-bucket'"]),
    ("per", &["'user'", "'api-key'"]),
    ("mode", &["'enforce'", "'shadow'"]),
    ("capacity", &["100000", "1000"]),
    ("when-full", &["'evict'", "'deny'", "'protect'"]),
    ("start", &["'full'", "'empty'"]),
    ("sharing", &["'strict'", "'leased'"]),
    ("outage", &["'local'", "'open'", "'closed'"]),
    ("match.path", &["'/a'", "['/a', '/b']", "'/a/{*rest}'"]),
    ("match.method", &["'GET'", "['GET', 'POST']"]),
    ("match.header.x-a", &["'*'", "'1'", "'2'"]),
    ("cost", &["1", "2", "{ header = 'x-cost' }"]),
    ("settle", &["{ status = '4xx' }", "{ status = '401' }", "{ header = 'x-used' }"]),
    ("ban.strikes", &["5", "6"]),
    ("ban.window", &["'10m'", "'1h'"]),
];

/// The key under which a change is reported.
fn reported(key: &str) -> &str {
    if key.starts_with("match.header") { "match.header" } else { key }
}

/// A limit by the places of its values.
fn policy(places: &[usize]) -> Policy {
    let keys = KEYS.iter().zip(places);
    let keys = keys.map(|((key, values), place)| format!("{key} = {}\n", values[*place]));
    let text = format!(
        "[identity]\ntrusted-proxies = ['10.0.0.0/8']\n\
         api-key = {{ header = 'x-api-key', accept = 'any' }}\n\
         user = {{ header = 'x-user', accept = 'any' }}\n[[limit]]\nname = 'api'\nban.mode = 'shadow'\n{}",
        keys.collect::<String>()
    );
    Policy::from_toml(&text).unwrap()
}

fn places() -> impl Strategy<Value = Vec<usize>> {
    KEYS.iter().map(|(_, values)| 0..values.len()).collect::<Vec<_>>()
}

/// Another limit that has most keys alike.
fn pair() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    let changed = prop::collection::vec(prop::bool::weighted(0.15), KEYS.len());
    (places(), places(), changed).prop_map(|(old, other, changed)| {
        let choose = |place: usize| if changed[place] { other[place] } else { old[place] };
        let new = (0..old.len()).map(choose).collect();
        (old, new)
    })
}

fn remaining(gate: &TestGate) -> u64 {
    at_once(gate.peek_limit("api", &["u1"], 0)).unwrap().remaining()
}

proptest! {
    /// Neither is a change forgotten, nor is one invented.
    #[test]
    fn what_differs_is_reported_under_its_key_and_nothing_else((old, new) in pair()) {
        let changes = Changes::between(&policy(&old), &policy(&new));
        let differs = |(place, (key, _)): (usize, &(&'static str, _))| {
            (old[place] != new[place]).then(|| reported(key))
        };
        let expected: BTreeSet<_> = KEYS.iter().enumerate().filter_map(differs).collect();
        let found: BTreeSet<_> = changes.changed.iter().map(|it| it.key.as_str()).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(changes.is_empty(), old == new);
        let back = Changes::between(&policy(&new), &policy(&old));
        prop_assert_eq!(back.changed.len(), changes.changed.len());
        prop_assert_eq!(back.restarted, changes.restarted);
    }

    /// A gate keeps what was spent exactly under those limits that are not said to start afresh.
    #[test]
    fn callers_keep_what_they_have_spent_unless_it_is_said((old, new) in pair()) {
        let ((gate, _), (untouched, _)) = (gate_of(policy(&old)), gate_of(policy(&new)));
        let before = remaining(&gate);
        let check = LimitCheck::new("api", &["u1"], 3);
        let spent = at_once(gate.decide(&check)).unwrap().is_allowed() && before > 0;
        let changes = gate.replace(policy(&new)).unwrap();
        // What a caller has who was never seen.
        let full = remaining(&untouched);
        let is_kept = remaining(&gate) < full;
        let expected = spent && changes.restarted.is_empty() && full > 0;
        prop_assert_eq!(is_kept, expected, "{} of {}", remaining(&gate), full);
    }
}
