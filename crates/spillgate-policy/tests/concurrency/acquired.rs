//! Permits that programs elsewhere hold.

use std::time::Duration;

use spillgate_policy::store::PermitId;
use spillgate_policy::{Limit, Mode, Policy};

use super::{held, now, usage};
use crate::common::{TestGate, gate, gate_of, get};

const POLICY: &str = "[[limit]]\nname = 'jobs'\nby-name = true\nper = 'user'\n\
                      concurrent = { limit = 2, ttl = '10s' }\n";

fn acquire(gate: &TestGate, count: u64) -> Option<PermitId> {
    now(gate.acquire("jobs", &["42"], count, None)).unwrap().id()
}

#[test]
fn permits_are_held_until_they_are_released_once() {
    let (gate, _) = gate(POLICY);
    let first = now(gate.acquire("jobs", &["42"], 1, None)).unwrap();
    assert_eq!(first.ttl(), Duration::from_secs(10));
    assert_eq!(first.decision().unwrap().remaining(), 1);
    let first = first.id().unwrap();
    let second = acquire(&gate, 1).unwrap();
    assert_ne!(first, second);
    let denied = now(gate.acquire("jobs", &["42"], 1, None)).unwrap();
    assert_eq!((denied.id(), denied.outcome().denied_by()), (None, Some("jobs")));
    assert!(now(gate.release(first)).unwrap());
    assert!(!now(gate.release(first)).unwrap(), "released already");
    assert!(!now(gate.renew(first, Duration::from_secs(5))).unwrap());
    assert_eq!(held(&gate, "jobs"), 1);
    assert!(!now(gate.release(PermitId([7; 32]))).unwrap(), "never acquired");
    assert!(now(gate.release(second)).unwrap());
    assert_eq!(held(&gate, "jobs"), 0);
}

#[test]
fn what_is_not_renewed_expires_and_is_counted() {
    let (gate, clock) = gate(POLICY);
    let (first, second) = (acquire(&gate, 1).unwrap(), acquire(&gate, 1).unwrap());
    clock.advance(Duration::from_nanos(9_999_999_999));
    assert!(now(gate.renew(second, Duration::from_secs(3))).unwrap());
    assert_eq!(acquire(&gate, 1), None);
    clock.advance(Duration::from_nanos(1));
    let third = acquire(&gate, 1).unwrap();
    assert!(!now(gate.release(first)).unwrap(), "an expired permit returns nothing");
    assert!(!now(gate.renew(first, Duration::from_secs(3))).unwrap());
    assert_eq!((usage(&gate, "jobs").held, usage(&gate, "jobs").expired), (2, 1));
    clock.advance(Duration::from_secs(3));
    assert_eq!((usage(&gate, "jobs").held, usage(&gate, "jobs").expired), (1, 2));
    assert!(now(gate.release(third)).unwrap());
}

#[test]
fn a_renewed_permit_may_also_expire_earlier() {
    let (gate, clock) = gate(POLICY);
    let id = acquire(&gate, 2).unwrap();
    assert!(now(gate.renew(id, Duration::from_secs(1))).unwrap());
    clock.advance(Duration::from_secs(1));
    assert!(!now(gate.renew(id, Duration::from_secs(1))).unwrap());
    assert_eq!(usage(&gate, "jobs").expired, 2, "each permit counts");
}

#[test]
fn requests_and_acquired_permits_share_a_limit() {
    let (gate, clock) = gate("[[limit]]\nname = 'jobs'\nper = 'ip'\nconcurrent = 1\n");
    let acquire = || now(gate.acquire("jobs", &["203.0.113.7"], 1, None)).unwrap().id();
    let call = get("203.0.113.7", "/");
    let open = call.through(&gate);
    assert_eq!(acquire(), None);
    drop(open);
    acquire().unwrap();
    assert!(!call.through(&gate).is_allowed());
    clock.advance(Duration::from_secs(30));
    assert!(call.through(&gate).is_allowed(), "expired before anyone is denied");
}

#[test]
fn a_shadow_limit_gives_permits_beyond() {
    let limit = Limit::concurrent("jobs", 1).by_name().per(["user"]).mode(Mode::Shadow);
    let (gate, _) = gate_of(Policy::builder().limit(limit).build().unwrap());
    acquire(&gate, 1).unwrap();
    let beyond = now(gate.acquire("jobs", &["42"], 1, None)).unwrap();
    assert!(beyond.decision().unwrap().is_denied() && beyond.outcome().is_allowed());
    assert!(now(gate.release(beyond.id().unwrap())).unwrap());
    assert_eq!(held(&gate, "jobs"), 1);
}

#[test]
fn what_cannot_be_acquired_is_an_error() {
    let (gate, _) = gate(&format!(
        "{POLICY}[[limit]]\nname = 'rate'\nby-name = true\nper = 'user'\nquota = '1/s'\n"
    ));
    let acquire = |limit: &str, count, ttl: Option<u64>| {
        let ttl = ttl.map(Duration::from_millis);
        now(gate.acquire(limit, &["42"], count, ttl)).unwrap_err().to_string()
    };
    for (error, expected) in [
        (acquire("rate", 1, None), "limit \"rate\" is not on concurrency"),
        (acquire("job", 1, None), "there is no limit \"job\"; did you mean \"jobs\"?"),
        (acquire("jobs", 0, None), "0 permits cannot be acquired; ask for 1"),
        (acquire("jobs", 1, Some(999)), "999ms; use a time between 1s and 1d"),
        (acquire("jobs", 1, Some(86_400_001)), "use a time between 1s and 1d"),
    ] {
        assert!(error.contains(expected), "{error}\n  should contain\n{expected}");
    }
    assert!(now(gate.renew(PermitId([0; 32]), Duration::ZERO)).is_err());
    assert_eq!(held(&gate, "jobs"), 0);
}

#[test]
fn an_id_survives_its_text_and_no_other_text_is_one() {
    let (gate, _) = gate(POLICY);
    let id = acquire(&gate, 1).unwrap();
    assert_eq!(id.to_string().parse(), Ok(id));
    for text in ["", "00", "zz", &"0".repeat(63), &"0".repeat(65), &"é".repeat(32)] {
        assert_eq!(text.parse::<PermitId>(), Err(()), "{text:?}");
    }
    assert!(!format!("{id:?}").contains(&id.to_string()));
}

#[test]
fn a_million_expired_permits_leave_room() {
    let (gate, clock) =
        gate("[[limit]]\nname = 'jobs'\nby-name = true\nper = 'user'\nconcurrent = 1000000\n");
    let acquire = |user: &str| now(gate.acquire("jobs", &[user], 1, None));
    for _ in 0..1_000_000 {
        assert!(acquire("42").unwrap().id().is_some());
    }
    let full = acquire("43").unwrap_err();
    assert!(full.is_store());
    let message = "1000000 acquired permits are held; release some, or let them expire";
    assert_eq!((full.for_clients(), full.to_string()), (message.to_owned(), message.to_owned()));
    // Nobody asks for what could expire, but for another caller's.
    clock.advance(Duration::from_secs(30));
    assert!(acquire("43").unwrap().id().is_some());
    assert_eq!((usage(&gate, "jobs").held, usage(&gate, "jobs").expired), (1, 1_000_000));
}
