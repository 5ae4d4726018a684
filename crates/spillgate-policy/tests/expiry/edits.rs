//! Edits in the form in which they are saved and shared.

use std::sync::atomic::Ordering;
use std::time::Duration;

use spillgate::{Clock, Timestamp};
use spillgate_policy::store::{Edit, Store};
use spillgate_policy::{Answer, Gate, ListKind, Policy, Terms};

use super::gate;
use super::remote::Remote;
use crate::common::{at_once, get, try_once};

const POLICY: &str = "block = ['10.0.0.1']\n[[limit]]\nname = 'api'\nquota = '1/h burst 5'\n";

fn policy() -> Policy {
    Policy::from_toml(POLICY).unwrap()
}

fn edit(key: &str, value: Option<&str>, until: Option<u64>) -> Edit {
    Edit::new(key.to_owned(), value.map(str::to_owned), until.map(Timestamp::from_secs))
}

#[test]
fn edits_have_a_key_a_value_and_an_end() {
    let (gate, clock) = gate(POLICY);
    clock.set(Timestamp::from_secs(100));
    let hour = || Terms::until(Timestamp::from_secs(3700));
    let comment = "port \"scan\"";
    at_once(gate.list(ListKind::Block, "203.0.113.50", hour().with_comment(comment))).unwrap();
    at_once(gate.list(ListKind::Allow, "key:a]\"b", Terms::permanent())).unwrap();
    at_once(gate.unlist(ListKind::Block, "10.0.0.1")).unwrap();
    let quota = "9/s burst 18".parse().unwrap();
    at_once(gate.set_override("api", &["key:k1"], quota, hour())).unwrap();
    let mut edits = gate.edits();
    edits.sort_by(|one, other| one.key.cmp(&other.key));
    let shown: Vec<_> = edits
        .iter()
        .map(|edit| (edit.key.as_str(), edit.value.as_deref().unwrap(), edit.until))
        .collect();
    let end = Some(Timestamp::from_secs(3700));
    assert_eq!(
        shown,
        [
            (r#"["list","allow","key:a]\"b"]"#, "{}", None),
            (r#"["list","block","10.0.0.1/32"]"#, r#"{"removed":true}"#, None),
            (r#"["list","block","203.0.113.50/32"]"#, r#"{"comment":"port \"scan\""}"#, end),
            (r#"["override","api","api-key:k1"]"#, r#"{"quota":"9/s burst 18"}"#, end),
        ]
    );
    // Another gate is the same with them, also if it is told twice.
    let (other, clock) = self::gate(POLICY);
    clock.set(Timestamp::from_secs(100));
    for _ in 0..2 {
        other.apply_all(&edits).unwrap();
        for list in [ListKind::Allow, ListKind::Block] {
            assert_eq!(other.listed(list), gate.listed(list));
        }
        assert_eq!(other.overrides(), gate.overrides());
        let mut again = other.edits();
        again.sort_by(|one, other| one.key.cmp(&other.key));
        assert!(again == edits);
    }
    assert!(!format!("{:?} {:?}", gate.save(), edits).contains("203.0.113.50"));
}

#[test]
fn an_edit_that_cannot_be_understood_is_an_error_and_the_others_count() {
    let (gate, clock) = gate(POLICY);
    clock.set(Timestamp::from_secs(100));
    for (key, value) in [
        ("", "{}"),
        ("{}", "{}"),
        ("[1]", "{}"),
        (r#"["list","block"]"#, "{}"),
        (r#"["list","grey","10.0.0.2"]"#, "{}"),
        (r#"["list","block","secret"]"#, "{}"),
        (r#"["list","block","10.0.0.2"]"#, "secret"),
        (r#"["list","block","10.0.0.2"]"#, r#"{"comment":7}"#),
        (r#"["list","block","10.0.0.2"]"#, r#"{"comment":"secret\u0000"}"#),
        (r#"["override"]"#, "{}"),
        (r#"["override","api","user:1"]"#, "{}"),
        (r#"["override","api","user:1"]"#, r#"{"quota":"secret"}"#),
    ] {
        let good = edit(r#"["list","block","10.0.0.3"]"#, Some("{}"), None);
        let error = gate.apply_all(&[edit(key, Some(value), None), good]).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(get("10.0.0.3", "/").through(&gate).answer(), Answer::Blocked);
        gate.apply(&edit(r#"["list","block","10.0.0.3"]"#, None, None)).unwrap();
        assert_ne!(get("10.0.0.3", "/").through(&gate).answer(), Answer::Blocked);
    }
    // Of kinds that a later version knows.
    gate.apply(&edit(r#"["weather","sunny"]"#, Some("sun"), None)).unwrap();
    gate.apply(&edit("[]", Some("sun"), None)).unwrap();
    // One that has ended undoes.
    gate.apply(&edit(r#"["list","block","10.0.0.4"]"#, Some("{}"), Some(200))).unwrap();
    gate.apply(&edit(r#"["list","block","10.0.0.4"]"#, Some("{}"), Some(100))).unwrap();
    assert!(gate.edits().is_empty());
}

#[test]
fn an_override_for_a_limit_that_is_not_there_waits_for_it() {
    let (gate, _) = gate("[[limit]]\nname = 'other'\nquota = '1/h'\n");
    let value = Some("{\"quota\":\"1/h burst 50\"}");
    gate.apply(&edit(r#"["override","api","10.0.0.9"]"#, value, None)).unwrap();
    // Nor does one that does not fit hinder anybody.
    gate.apply(&edit(r#"["override","other","a","b"]"#, value, None)).unwrap();
    assert!(gate.overrides().is_empty());
    gate.replace(policy()).unwrap();
    assert_eq!(at_once(gate.peek_limit("api", &["10.0.0.9"], 1)).unwrap().limit(), 50);
    assert_eq!(gate.overrides().len(), 1);
}

#[test]
fn a_change_that_other_nodes_cannot_be_told_of_is_not_made() {
    let store = Remote::default();
    let gate = Gate::with_store(policy(), store.clone()).unwrap();
    let quota = "1/h burst 50".parse().unwrap();
    let terms = Terms::permanent;
    let blocked = |peer| at_once(gate.decide(&get(peer, "/").request())).unwrap().answer();
    store.is_gone.store(true, Ordering::Relaxed);
    assert!(at_once(gate.list(ListKind::Block, "10.0.0.2", terms())).unwrap_err().is_store());
    assert!(at_once(gate.unlist(ListKind::Block, "10.0.0.1")).unwrap_err().is_store());
    let error = at_once(gate.set_override("api", &["10.0.0.9"], quota, terms())).unwrap_err();
    assert!(error.is_store());
    assert!(at_once(gate.remove_override("api", &["10.0.0.9"])).unwrap_err().is_store());
    assert!(gate.edits().is_empty());
    assert_eq!((blocked("10.0.0.2"), blocked("10.0.0.1")), (Answer::Allowed, Answer::Blocked));

    store.is_gone.store(false, Ordering::Relaxed);
    assert!(at_once(gate.list(ListKind::Block, "10.0.0.2", terms())).unwrap());
    assert!(!at_once(gate.list(ListKind::Block, "10.0.0.2", terms())).unwrap());
    at_once(gate.set_override("api", &["10.0.0.9"], quota, terms())).unwrap();
    assert_eq!(store.published.lock().unwrap().len(), 2, "what changes nothing is not told");
    assert_eq!(blocked("10.0.0.2"), Answer::Blocked);
    assert_eq!(at_once(gate.peek_limit("api", &["10.0.0.9"], 1)).unwrap().limit(), 50);
}

#[test]
fn a_store_elsewhere_is_told_of_what_other_nodes_changed_and_of_what_ended() {
    let store = Remote::default();
    let text = "[[limit]]\nname = 'api'\nquota = '1/h burst 5'\n[[limit.override]]\n\
                caller = 'user:2'\nquota = '1/h burst 20'\nexpires = 1970-01-01T00:01:00Z\n";
    let clock = store.memory.clock().clone();
    clock.set(Timestamp::ZERO);
    let gate = Gate::with_store(Policy::from_toml(text).unwrap(), store.clone()).unwrap();
    let limit = |user| at_once(gate.peek_limit("api", &[user], 1)).unwrap().limit();
    let value = Some("{\"quota\":\"1/h burst 50\"}");
    gate.apply(&edit(r#"["override","api","user:1"]"#, value, Some(30))).unwrap();
    at_once(gate.expire_overrides()).unwrap();
    assert_eq!((limit("user:1"), limit("user:2")), (50, 20));
    clock.advance(Duration::from_secs(30));
    store.is_gone.store(true, Ordering::Relaxed);
    assert!(at_once(gate.expire_overrides()).unwrap_err().is_store());
    assert_eq!(limit("user:1"), 50, "the store was not told");
    assert!(gate.overrides_of("api").unwrap().iter().all(|it| it.values != ["user:1"]));
    store.is_gone.store(false, Ordering::Relaxed);
    at_once(gate.expire_overrides()).unwrap();
    assert_eq!((limit("user:1"), limit("user:2")), (5, 20));
    clock.advance(Duration::from_secs(30));
    at_once(gate.expire_overrides()).unwrap();
    assert_eq!(limit("user:2"), 5, "the policy's own has ended, too");
    assert!(gate.overrides().is_empty());
    assert_eq!(store.now(), Timestamp::from_secs(60));
}

#[test]
fn an_override_that_is_set_while_the_one_before_it_ends_is_neither_lost_here_nor_in_the_store() {
    let store = Remote::default();
    let gate = Gate::with_store(policy(), store.clone()).unwrap();
    let clock = store.memory.clock().clone();
    let half_a_minute = Duration::from_secs(30);
    let set = |quota: &str, terms| {
        at_once(gate.set_override("api", &["user:1"], quota.parse().unwrap(), terms)).unwrap();
    };
    set("1/h burst 50", Terms::until(clock.now() + half_a_minute));
    clock.advance(half_a_minute);
    store.is_slow.store(true, Ordering::Relaxed);
    let mut expiring = Box::pin(gate.expire_overrides());
    assert!(try_once(expiring.as_mut()).is_none());
    store.is_slow.store(false, Ordering::Relaxed);
    set("1/h burst 60", Terms::permanent());
    // The store hears of the end of the first after the second.
    at_once(expiring).unwrap();
    at_once(gate.expire_overrides()).unwrap();
    assert_eq!(at_once(gate.peek_limit("api", &["user:1"], 1)).unwrap().limit(), 60);
    assert_eq!(gate.overrides_of("api").unwrap().len(), 1);
}

#[test]
fn in_process_too_an_override_that_is_set_while_the_one_before_it_ends_stays() {
    let (gate, clock) = gate("[[limit]]\nname = 'api'\nquota = '1/h burst 5'\n");
    let set = |terms| {
        at_once(gate.set_override("api", &["user:1"], "1/h burst 50".parse().unwrap(), terms))
    };
    let second = Duration::from_secs(1);
    for round in 0..spillgate_testing::effort() * 2_000 {
        set(Terms::until(clock.now() + second)).unwrap();
        clock.advance(second);
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                at_once(gate.expire_overrides()).unwrap();
            });
            barrier.wait();
            set(Terms::permanent()).unwrap();
        });
        assert_eq!(gate.overrides_of("api").unwrap().len(), 1, "round {round}");
    }
}

#[test]
fn there_is_room_for_so_many_changes_and_not_more() {
    let (gate, clock) = gate(POLICY);
    let until = clock.now() + Duration::from_secs(60);
    let all: Vec<_> = (0..100_000_u32)
        .map(|number| {
            let key = format!("[\"list\",\"block\",\"user:{number}\"]");
            Edit::new(key, Some("{}".to_owned()), Some(until))
        })
        .collect();
    gate.apply_all(&all).unwrap();
    let more = |entry| at_once(gate.list(ListKind::Block, entry, Terms::permanent()));
    let error = more("user:one-more").unwrap_err().to_string();
    assert!(error.contains("100000 changes made at run time already; remove some"), "{error}");
    // Those that are there can be changed; what has ended makes room.
    assert!(at_once(gate.unlist(ListKind::Block, "user:7")).unwrap());
    assert!(more("user:one-more").unwrap());
    assert!(more("user:two-more").is_err());
    let later = Terms::until(until + Duration::from_secs(1)).with_comment("still");
    assert!(at_once(gate.list(ListKind::Block, "user:8", later.clone())).unwrap(), "it is there");
    let own = |quota: &str, terms| {
        at_once(gate.set_override("api", &["user:9"], quota.parse().unwrap(), terms))
    };
    assert!(own("7/s", Terms::permanent()).is_err(), "it is not there");
    at_once(gate.unlist(ListKind::Block, "user:10")).unwrap();
    own("7/s", Terms::permanent()).unwrap();
    own("8/s", later).unwrap();
    clock.set(until);
    assert!(more("user:two-more").unwrap());
    assert_eq!(gate.listed(ListKind::Block).len(), 4);
}

#[test]
fn bans_are_told_also_if_whoever_set_them_gave_up_waiting() {
    let store = Remote::default();
    let gate = Gate::with_store(policy(), store.clone()).unwrap();
    store.is_slow.store(true, Ordering::Relaxed);
    {
        let mut set = std::pin::pin!(gate.ban("203.0.113.7", Duration::from_secs(60), None));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(set.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(gate.bans().len(), 1);
    store.is_slow.store(false, Ordering::Relaxed);
    at_once(gate.flush_offences()).unwrap();
    at_once(gate.flush_offences()).unwrap();
    let published = store.published.lock().unwrap();
    assert_eq!(published.len(), 1, "once");
    assert_eq!(published[0].key, "[\"ban\",\"ip:203.0.113.7\"]");
}
