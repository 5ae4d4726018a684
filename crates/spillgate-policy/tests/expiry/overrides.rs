use std::time::Duration;

use spillgate::{Clock, ManualClock, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Origin, Policy, Terms};

use super::gate;
use crate::common::{TestGate, at_once};

const POLICY: &str = "[[limit]]\nname = 'api'\nquota = '1/h burst 5'\n[[limit.override]]\n\
    caller = 'user:partner'\nquota = '1/h burst 20'\ncomment = 'contract'\n";

fn limit(gate: &TestGate, caller: &str) -> u64 {
    at_once(gate.peek_limit("api", &[caller], 1)).unwrap().limit()
}

fn set(gate: &TestGate, caller: &str, quota: &str, terms: Terms) {
    at_once(gate.set_override("api", &[caller], quota.parse().unwrap(), terms)).unwrap();
}

fn in_seconds(gate: &TestGate, seconds: u64) -> Terms {
    Terms::until(gate.store().clock().now() + Duration::from_secs(seconds))
}

#[test]
fn an_override_ends_at_its_very_time_and_what_was_spent_stays_spent() {
    let (gate, clock) = gate(POLICY);
    set(&gate, "user:1", "1/h burst 50", in_seconds(&gate, 60));
    let check = spillgate_policy::LimitCheck::new("api", &["user:1"], 3);
    assert!(at_once(gate.decide(&check)).unwrap().is_allowed());
    clock.set(Timestamp::from_nanos(60_000_000_000 - 1));
    assert_eq!(limit(&gate, "user:1"), 50);
    clock.set(Timestamp::from_secs(60));
    assert_eq!(limit(&gate, "user:1"), 5);
    assert_eq!(at_once(gate.peek_limit("api", &["user:1"], 0)).unwrap().remaining(), 2);
    assert!(gate.edits().is_empty());
}

#[test]
fn setting_again_replaces_expiry_and_comment_and_survives_a_new_policy() {
    let (gate, clock) = gate(POLICY);
    set(&gate, "user:1", "1/h burst 50", in_seconds(&gate, 60));
    set(&gate, "user:1", "1/h burst 50", in_seconds(&gate, 120).with_comment("trial"));
    clock.advance(Duration::from_secs(60));
    gate.replace(Policy::from_toml(POLICY).unwrap()).unwrap();
    assert_eq!(limit(&gate, "user:1"), 50, "extended");
    set(&gate, "user:1", "1/h burst 50", in_seconds(&gate, 30));
    gate.replace(Policy::from_toml(&POLICY.replace("burst 5'", "burst 6'")).unwrap()).unwrap();
    clock.advance(Duration::from_secs(30));
    assert_eq!(limit(&gate, "user:1"), 6, "shortened");
    set(&gate, "user:1", "1/h burst 50", in_seconds(&gate, 30));
    set(&gate, "user:1", "1/h burst 50", Terms::permanent());
    clock.advance(Duration::from_secs(9999));
    assert_eq!(limit(&gate, "user:1"), 50, "permanent");
}

#[test]
fn after_one_set_at_run_time_the_policys_own_counts_again() {
    let (gate, clock) = gate(POLICY);
    assert_eq!(limit(&gate, "user:partner"), 20);
    let error = at_once(gate.remove_override("api", &["user:partner"])).unwrap_err();
    assert!(error.is_policy() && error.to_string().contains("remove it there"), "{error}");
    set(&gate, "user:partner", "1/h burst 70", in_seconds(&gate, 60));
    assert_eq!(limit(&gate, "user:partner"), 70);
    gate.replace(Policy::from_toml(POLICY).unwrap()).unwrap();
    assert_eq!(limit(&gate, "user:partner"), 70);
    assert_eq!(gate.overrides()[0].origin, Origin::RunTime);
    clock.advance(Duration::from_secs(60));
    at_once(gate.expire_overrides()).unwrap();
    assert_eq!(limit(&gate, "user:partner"), 20);
    set(&gate, "user:partner", "1/h burst 70", Terms::permanent());
    assert!(at_once(gate.remove_override("api", &["user:partner"])).unwrap());
    assert_eq!(limit(&gate, "user:partner"), 20);
    let entry = gate.overrides().remove(0);
    assert_eq!((entry.origin, entry.comment.as_deref()), (Origin::Policy, Some("contract")));
    assert!(!at_once(gate.remove_override("api", &["user:nobody"])).unwrap());
}

#[test]
fn an_override_of_the_policy_ends_at_its_time_and_may_have_ended() {
    let text = POLICY.replace("comment", "expires = '1970-01-01T00:01:00Z'\ncomment");
    let (gate, clock) = gate(&text);
    assert_eq!(limit(&gate, "user:partner"), 20);
    assert_eq!(gate.overrides()[0].until, Some(Timestamp::from_secs(60)));
    clock.set(Timestamp::from_secs(60));
    assert_eq!(limit(&gate, "user:partner"), 5);
    assert!(gate.overrides().is_empty());
    let changes = gate.replace(Policy::from_toml(&text).unwrap()).unwrap();
    assert!(changes.is_empty());
    assert_eq!(limit(&gate, "user:partner"), 5, "a reload does not revive it");
    let later = text.replace("00:01:00", "00:02:00");
    let changes = gate.replace(Policy::from_toml(&later).unwrap()).unwrap();
    let change = &changes.changed[0];
    assert_eq!((change.limit.as_str(), change.key.as_str()), ("api", "override"));
    assert!(change.to.contains("expires 1970-01-01T00:02:00Z"), "{change}");
    assert_eq!(limit(&gate, "user:partner"), 20);
}

#[test]
fn one_caller_has_one_override_however_it_is_written() {
    let (gate, _) = gate(POLICY);
    for (spellings, canonical) in [
        (&["203.0.113.7", "ip:203.0.113.7", "::ffff:203.0.113.7"][..], "203.0.113.7"),
        (&["2001:db8::1", "2001:DB8::2", "ip:2001:db8:0:0:9::"], "2001:db8::"),
        (&["key:k1", "api-key:k1"], "api-key:k1"),
        (&["user:key:x"], "user:key:x"),
        (&["anonymous"], "anonymous"),
    ] {
        for spelling in spellings {
            set(&gate, spelling, "1/h burst 50", Terms::permanent());
        }
        let set: Vec<_> =
            gate.overrides().into_iter().filter(|it| it.origin == Origin::RunTime).collect();
        assert_eq!(set.len(), 1, "{spellings:?}");
        assert_eq!(set[0].values, [canonical]);
        assert!(at_once(gate.remove_override("api", &[spellings[0]])).unwrap());
    }
    assert_eq!(gate.overrides_of("api").unwrap().len(), 1);
    let error = gate.overrides_of("apo").unwrap_err();
    assert!(error.is_unknown() && error.to_string().contains("did you mean"), "{error}");
}

#[test]
fn an_override_is_restored_with_what_was_spent_for_as_long_as_it_had_left() {
    for (down, expected, left) in [(0, 50, 43), (59, 50, 43), (60, 5, 0), (9999, 5, 0)] {
        let (gate, clock) = gate(POLICY);
        set(&gate, "user:1", "1/day burst 50", in_seconds(&gate, 120));
        clock.advance(Duration::from_secs(60));
        let check = spillgate_policy::LimitCheck::new("api", &["user:1"], 7);
        assert!(at_once(gate.decide(&check)).unwrap().is_allowed());
        let (saved, then) = (gate.save(), clock.now() + Duration::from_secs(down));
        // As if it had been read from a file.
        let clock = ManualClock::new(Timestamp::from_secs(77_777));
        let store = Memory::new(clock.clone()).with_seed(gate.store().seed());
        let gate = Gate::with_store(Policy::from_toml(POLICY).unwrap(), store).unwrap();
        gate.restore(saved, then).unwrap();
        let peeked = at_once(gate.peek_limit("api", &["user:1"], 0)).unwrap();
        assert_eq!(peeked.limit(), expected, "{down}");
        if down < 3600 {
            assert_eq!(peeked.remaining(), left, "{down}");
        }
        clock.advance(Duration::from_secs(60 - down.min(60)));
        assert_eq!(limit(&gate, "user:1"), 5, "{down}");
    }
}
