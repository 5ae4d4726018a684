use std::time::Duration;

use super::*;
use crate::{Policy, RequestView};

fn now() -> Timestamp {
    Timestamp::from_secs(1_700_000_000)
}

fn policy() -> Policy {
    Policy::builder().build().unwrap()
}

fn ban(user: usize, seconds: u64) -> Arc<Ban> {
    let caller = Caller::User(user.to_string().into_bytes().into());
    Arc::new(Ban::new(caller, &policy().identifier, now(), Duration::from_secs(seconds)))
}

fn users(bans: &Bans, at: Timestamp) -> Vec<String> {
    bans.list(at).iter().map(|ban| ban.caller_text().to_owned()).collect()
}

#[test]
fn when_all_room_is_taken_the_ban_nearest_its_end_goes() {
    let bans = Bans::with_capacity(3);
    for (user, seconds) in [(1, 50), (2, 20), (3, 90)] {
        assert!(bans.set(ban(user, seconds), Earlier::Stays, now()));
    }
    assert_eq!(users(&bans, now()), ["user:2", "user:1", "user:3"]);
    assert!(bans.set(ban(4, 10), Earlier::Stays, now()));
    assert_eq!(users(&bans, now()), ["user:4", "user:1", "user:3"]);
    assert_eq!(bans.evicted(), 1);
}

#[test]
fn a_ban_that_is_over_makes_room_and_is_not_counted_as_evicted() {
    let bans = Bans::with_capacity(2);
    bans.set(ban(1, 5), Earlier::Stays, now());
    bans.set(ban(2, 50), Earlier::Stays, now());
    bans.set(ban(3, 50), Earlier::Stays, now() + Duration::from_secs(5));
    assert_eq!(bans.evicted(), 0);
    assert_eq!(bans.list(now() + Duration::from_secs(5)).len(), 2);
    assert!(bans.list(now() + Duration::from_secs(50)).is_empty());
    assert!(bans.is_empty());
}

#[test]
fn a_stricter_ban_stays_unless_an_operator_replaces_it() {
    let bans = Bans::default();
    let shadow = |seconds| Arc::new(Ban { mode: Mode::Shadow, ..Ban::clone(&ban(1, seconds)) });
    assert!(bans.set(shadow(500), Earlier::Stays, now()));
    assert!(bans.set(ban(1, 50), Earlier::Stays, now()), "one that refuses is stricter");
    assert!(!bans.set(shadow(500), Earlier::Stays, now()));
    assert!(!bans.set(ban(1, 20), Earlier::Stays, now()));
    assert_eq!(bans.list(now())[0].until, now() + Duration::from_secs(50));
    assert!(bans.set(ban(1, 20), Earlier::Replaced, now()));
    assert_eq!(bans.list(now())[0].until, now() + Duration::from_secs(20));
    assert_eq!(bans.list(now()).len(), 1);
    assert!(bans.lift(&bans.list(now())[0].caller, now()));
    assert!(bans.is_empty());
}

#[test]
fn a_hundred_thousand_bans_have_room() {
    let bans = Bans::default();
    for user in 0..CAPACITY {
        bans.set(ban(user, 60 + user as u64), Earlier::Stays, now());
    }
    assert_eq!((bans.list(now()).len(), bans.evicted()), (CAPACITY, 0));
    bans.set(ban(CAPACITY, 1), Earlier::Stays, now());
    assert_eq!((bans.list(now()).len(), bans.evicted()), (CAPACITY, 1));
}

#[test]
fn a_ban_is_the_same_after_a_round_trip_as_an_edit() {
    let identifier = policy().identifier;
    let seconds = Duration::from_secs(90);
    for caller in [
        Caller::User(b"o'\"\\hara".to_vec().into()),
        Caller::ApiKey(b"k:1".to_vec().into()),
        Caller::Ip([203, 0, 113, 7].into()),
        Caller::Ip("2001:db8:1:2::".parse().unwrap()),
    ] {
        let ban = Ban::new(caller, &identifier, now(), seconds);
        let full =
            Ban { reason: Some("why".into()), limit: Some("api".into()), count: 3, ..ban.clone() };
        for ban in [ban, full] {
            let edit = ban.to_edit();
            assert_eq!(edit.until, Some(ban.until));
            assert!(Ban::from_edit(&edit, &identifier) == Some(ban));
        }
    }
}

#[test]
fn an_edit_that_is_not_a_ban_is_none() {
    let identifier = policy().identifier;
    let value = r#"{"count":1,"length_ms":1000,"shadow":false,"status":429}"#;
    let edit = |key: &str, value: &str, until| {
        let edit = crate::store::Edit::new(key.to_owned(), Some(value.to_owned()), until);
        Ban::from_edit(&edit, &identifier).is_some()
    };
    assert!(edit(r#"["ban","ip:203.0.113.7"]"#, value, Some(now())));
    assert!(!edit(r#"["list","ip:203.0.113.7"]"#, value, Some(now())));
    assert!(!edit(r#"["ban","anonymous"]"#, value, Some(now())));
    assert!(!edit(r#"["ban","203.0.113.0/24"]"#, value, Some(now())));
    assert!(!edit(r#"["ban"]"#, value, Some(now())));
    assert!(!edit("ban", value, Some(now())));
    assert!(!edit(r#"["ban","ip:203.0.113.7"]"#, value, None), "a ban has an end");
    assert!(!edit(r#"["ban","ip:203.0.113.7"]"#, "{}", Some(now())));
    let odd = value.replace("429", "200");
    assert!(!edit(r#"["ban","ip:203.0.113.7"]"#, &odd, Some(now())));
}

#[test]
fn the_bans_of_keys_are_looked_for_also_if_the_caller_is_an_address() {
    let policy = Policy::from_toml(
        "limit = []\n[identity]\norder = [\"ip\"]\n\
         api-key = { header = \"x-api-key\", accept = \"any\" }",
    )
    .unwrap();
    let (parts, ()) =
        http::Request::get("/").header("x-api-key", "k1").body(()).unwrap().into_parts();
    let request = RequestView::from_parts(&parts, Some([203, 0, 113, 7].into()));
    let sender = policy.identifier.sender(&request);
    let bans = Bans::default();
    let key = Caller::ApiKey(b"k1".to_vec().into());
    let at = BansAt { bans: &bans, now: now() };
    assert!(at.of_sender(&request, &sender, &policy.identifier).is_none());
    let ban = Ban::new(key, &policy.identifier, now(), Duration::from_secs(5));
    bans.set(Arc::new(ban), Earlier::Stays, now());
    let found = at.of_sender(&request, &sender, &policy.identifier).unwrap();
    assert_eq!(found.rest, Duration::from_secs(5));
}

#[test]
fn whoever_has_a_name_that_is_no_text_is_told_apart_and_found_again() {
    let identifier = &policy().identifier;
    let names: [&[u8]; 6] =
        [b"\xff\xfe", b"\xff\xfd", b"\xe9t\xe9", b"-hex:ff", "\u{fffd}".as_bytes(), b"a"];
    let callers = names.iter().flat_map(|name| {
        [Caller::User(name.to_vec().into()), Caller::ApiKey(name.to_vec().into())]
    });
    let mut keys = std::collections::HashSet::new();
    for caller in callers {
        let ban = Ban::new(caller.clone(), identifier, now(), Duration::from_secs(60));
        let edit = ban.to_edit();
        let again = Ban::from_edit(&edit, identifier).unwrap();
        assert_eq!(again.caller(), &caller, "{}", ban.caller_text());
        assert_eq!(ban::parse(ban.caller_text(), identifier).unwrap(), caller);
        assert!(keys.insert(edit.key.clone()), "{}", edit.key);
    }
    for text in ["user-hex:", "user-hex:f", "user-hex:+f", "user-hex:é", "ip-hex:ff", "-hex:ff"] {
        assert!(ban::parse(text, identifier).is_err(), "{text}");
    }
}
