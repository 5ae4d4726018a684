//! Bans, list entries, overrides and permits of one server count on the others.

use std::time::Duration;

use spillgate::{Clock, SystemClock};
use spillgate_testing::effort;

use super::{admin, config, metric, pair};
use crate::common::redis::Redis;
use crate::common::server::{Home, Server, until};

const LIMITS: &str = "
[[limit]]
name = 'api'
quota = '1/h burst 2'
ban = { strikes = 3, window = '10m', duration = '10m' }

[[limit]]
name = 'jobs'
by-name = true
per = 'user'
concurrent = { limit = 2, ttl = '2s' }
";

fn check(server: &Server, ip: &str) -> String {
    let body = format!("{{\"request\":{{\"path\":\"/\",\"ip\":\"{ip}\"}}}}");
    admin(server, "POST", "/v1/check", &body)
}

fn is_banned(server: &Server, ip: &str) -> bool {
    check(server, ip).contains("\"banned\":true")
}

fn is_blocked(server: &Server, ip: &str) -> bool {
    check(server, ip).contains("\"blocked\":true")
}

#[test]
fn strikes_at_two_servers_ban_at_both_within_a_second() {
    let redis = Redis::start();
    let (_home, [one, other]) = pair(&redis, LIMITS);
    for server in [&one, &one, &one, &other, &one] {
        check(server, "203.0.113.7");
    }
    until("the ban is known at one", || is_banned(&one, "203.0.113.7"));
    let begin = SystemClock.now();
    until("the ban is known at the other", || is_banned(&other, "203.0.113.7"));
    let took = SystemClock.now().since(begin);
    // A second is promised; processes of a busy machine get more.
    let most = Duration::from_secs(if effort() > 1 { 2 } else { 60 });
    assert!(took < most, "{took:?}");
    assert!(admin(&other, "GET", "/v1/bans", "").contains("\"caller\":\"203.0.113.7\""));

    // Lifted at one, and gone at the other; what is set there holds here.
    assert!(admin(&other, "DELETE", "/v1/bans/203.0.113.7", "").ends_with("204"));
    until("the ban is lifted", || !is_banned(&one, "203.0.113.7"));
    let body = r#"{"ttl":"1h","reason":"scan"}"#;
    assert!(admin(&other, "PUT", "/v1/bans/user:7", body).ends_with("200"));
    until("the ban is listed", || admin(&one, "GET", "/v1/bans", "").contains("\"user:7\""));
}

#[test]
fn an_entry_and_an_override_reach_the_others_and_end_there_too() {
    let redis = Redis::start();
    let (home, [one, other]) = pair(&redis, LIMITS);
    let put = |path: &str, body: &str| {
        let answer = admin(&one, "PUT", path, body);
        assert!(answer.ends_with("200") || answer.ends_with("204"), "{answer}");
    };
    put("/v1/lists/block/203.0.113.50", r#"{"ttl":"1h","comment":"scan"}"#);
    put("/v1/lists/block/203.0.113.51", r#"{"ttl":"4s"}"#);
    put("/v1/limits/api/keys/203.0.113.60/override", r#"{"quota":"1/h burst 9","ttl":"4s"}"#);
    until("the entries are known", || is_blocked(&other, "203.0.113.51"));
    assert!(is_blocked(&other, "203.0.113.50"));
    let shown = admin(&other, "GET", "/v1/lists/block/203.0.113.50", "");
    assert!(
        shown.contains("\"comment\":\"scan\"") && shown.contains("\"expires_in\":3"),
        "{shown}"
    );
    let max = |server: &Server| {
        admin(server, "GET", "/v1/limits/api/keys/203.0.113.60", "").contains("\"max\":9")
    };
    assert!(max(&other), "the override counts at once");
    // One that starts later knows them before it answers.
    let third = home.start(&[]);
    assert!(is_blocked(&third, "203.0.113.50"));
    until("the entry has ended", || !is_blocked(&other, "203.0.113.51"));
    until("the override has ended", || !max(&other) && !max(&third));
    assert!(is_blocked(&third, "203.0.113.50"), "the other has not");
    assert!(admin(&third, "DELETE", "/v1/lists/block/203.0.113.50", "").ends_with("200"));
    until("the entry is removed", || !is_blocked(&one, "203.0.113.50"));
    // Nothing of this stands in Redis as text.
    assert!(!redis.tell("KEYS", "*203.0.113*").contains("203"), "{}", redis.tell("KEYS", "*"));
}

/// The permit that a server gives, if it does.
fn acquire(server: &Server) -> Option<String> {
    let body = r#"{"limit":"jobs","key":"42"}"#;
    let answer = admin(server, "POST", "/v1/permits", body);
    let id = answer.split("\"permit\":\"").nth(1)?;
    id.split('"').next().map(str::to_owned)
}

#[test]
fn permits_are_shared_released_anywhere_and_outlive_a_server() {
    let redis = Redis::start();
    let (_home, [one, other]) = pair(&redis, LIMITS);
    let (first, second) = (acquire(&one).unwrap(), acquire(&other).unwrap());
    assert_eq!([acquire(&one), acquire(&other)], [None, None]);
    let path = |id: &str| format!("/v1/permits/{id}");
    assert!(admin(&other, "DELETE", &path(&first), "").ends_with("204"));
    assert!(admin(&one, "DELETE", &path(&first), "").ends_with("404"), "once");
    let third = acquire(&one).unwrap();
    // A server that is gone takes nothing with it, and what it gave out expires.
    one.kill();
    assert_eq!(acquire(&other), None);
    let renewed = admin(&other, "POST", &format!("{}/renew", path(&third)), r#"{"ttl":"1m"}"#);
    assert!(renewed.ends_with("200"), "{renewed}");
    until("the second has expired", || acquire(&other).is_some());
    assert!(admin(&other, "DELETE", &path(&second), "").ends_with("404"), "it has expired");
    assert_eq!(acquire(&other), None, "the third is still held");
    assert!(metric(&other, "spillgate_permits_expired_total{limit=\"jobs\"}") >= 1.0);
}

#[test]
fn servers_with_another_secret_share_no_edits_and_say_so() {
    let redis = Redis::start();
    let home = Home::new(&config(&redis, LIMITS));
    let one = home.start(&[]);
    let entry = "/v1/lists/block/203.0.113.50";
    assert!(admin(&one, "PUT", entry, "").ends_with("200"));
    let text = config(&redis, LIMITS).replace("0123456789abcdef", "fedcba9876543210");
    let apart = Home::new(&text);
    let other = apart.start(&[]);
    assert!(is_blocked(&one, "203.0.113.50") && !is_blocked(&other, "203.0.113.50"));
}
