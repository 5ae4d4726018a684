//! What is reserved at one server is settled at any.

use std::thread;

use super::{admin, config, metric, pair};
use crate::common::redis::Redis;
use crate::common::server::{Server, until};
use crate::operate::clients::Resp;

const LIMIT: &str = "[[limit]]\nname = 'api'\nquota = '1/h burst 400'\nper = 'ip'\n";

/// Reserves an amount, and tells by which name it is settled.
fn reserve(server: &Server, cost: u64, expires_in: u64) -> String {
    let body = format!(
        "{{\"limit\":\"api\",\"key\":\"203.0.113.7\",\"cost\":{cost},\"expires_in\":{expires_in}}}"
    );
    let reserved = admin(server, "POST", "/v1/reserve", &body);
    let id = reserved.split("\"reservation\":\"").nth(1).and_then(|rest| rest.split('"').next());
    id.unwrap_or_else(|| panic!("{reserved}")).to_owned()
}

/// Settles, and tells the body and the status.
fn settle(server: &Server, id: &str, cost: u64) -> String {
    let body = format!("{{\"reservation\":\"{id}\",\"cost\":{cost}}}");
    admin(server, "POST", "/v1/settle", &body)
}

fn remaining(server: &Server) -> i64 {
    let mut client = Resp::connect(server.resp).unwrap();
    client.ask("SG.CHECK api 203.0.113.7 0").unwrap()[2]
}

#[test]
fn what_is_reserved_at_one_server_is_settled_at_the_other_and_once() {
    let redis = Redis::start();
    let (_home, [one, other]) = pair(&redis, LIMIT);
    let id = reserve(&one, 100, 60);
    assert_eq!(remaining(&other), 300);
    let settled = settle(&other, &id, 30);
    assert!(
        settled
            .contains("\"reserved\":100,\"cost\":30,\"uncharged\":0,\"max\":400,\"remaining\":370"),
        "{settled}"
    );
    for server in [&one, &other] {
        let again = settle(server, &id, 30);
        assert!(again.contains("it was settled") && again.ends_with(" 404"), "{again}");
        assert_eq!(remaining(server), 370);
        assert!(metric(server, "spillgate_reservations") == 0.0);
    }
    // More than there is becomes a debt.
    let id = reserve(&other, 370, 60);
    let settled = settle(&one, &id, 380);
    assert!(settled.contains("\"remaining\":0") && settled.ends_with(" 200"), "{settled}");
    let mut client = Resp::connect(other.resp).unwrap();
    let [limited, _, _, retry_after, _] = client.ask("SG.CHECK api 203.0.113.7 1").unwrap();
    assert!(limited == 1 && retry_after > 10 * 3600, "{retry_after}");
}

#[test]
fn of_all_who_settle_at_both_servers_at_once_one_does() {
    let redis = Redis::start();
    let (_home, servers) = pair(&redis, LIMIT);
    let _spent = reserve(&servers[0], 200, 60);
    let id = &reserve(&servers[0], 100, 60);
    let settled: Vec<String> = thread::scope(|scope| {
        let settling = servers.iter().cycle().take(8);
        let settling = settling.map(|server| scope.spawn(move || settle(server, id, 50)));
        let settling: Vec<_> = settling.collect();
        settling.into_iter().map(|settling| settling.join().unwrap()).collect()
    });
    let with = |status| settled.iter().filter(|settled| settled.ends_with(status)).count();
    assert_eq!((with(" 200"), with(" 404")), (1, 7), "{settled:?}");
    assert_eq!(remaining(&servers[1]), 150);
}

#[test]
fn one_that_has_expired_or_whose_limit_counts_otherwise_stays_spent() {
    let redis = Redis::start();
    let (home, [one, other]) = pair(&redis, LIMIT);
    let id = reserve(&one, 100, 1);
    until("that it has expired", || redis.tell("KEYS", "*deposit*").is_empty());
    let expired = settle(&other, &id, 0);
    assert!(expired.contains("has expired") && expired.ends_with(" 404"), "{expired}");
    let id = reserve(&one, 100, 60);
    home.write(
        &config(&redis, &LIMIT.replace("1/h burst 400", "400/day"))
            .replace("name = 'api'", "name = 'api'\nalgorithm = 'fixed-window'"),
    );
    other.signal("HUP");
    until("a reload", || remaining(&other) == 400);
    let changed = settle(&other, &id, 0);
    assert!(
        changed.contains("was removed or changed since") && changed.ends_with(" 409"),
        "{changed}"
    );
}

#[test]
fn nobody_finds_a_caller_or_a_name_to_settle_by_in_redis() {
    let redis = Redis::start();
    let (_home, [one, _other]) = pair(&redis, LIMIT);
    let id = reserve(&one, 100, 60);
    let keys = redis.tell("KEYS", "*");
    assert!(keys.contains("spillgate:deposit:{") && !keys.contains(&id), "{keys}");
    for key in keys.lines().filter(|key| key.contains("deposit")) {
        let kept = redis.tell("GET", key);
        assert!(kept.contains("api") && !kept.contains("203.0.113.7"), "{kept:?}");
    }
}

#[test]
fn in_an_outage_a_reservation_is_settled_where_it_was_made() {
    let mut redis = Redis::start();
    let (_home, [one, other]) = pair(&redis, LIMIT);
    let before = reserve(&one, 10, 60);
    redis.kill();
    until("that it is missed", || metric(&one, "spillgate_store_up") == 0.0);
    until("that it is missed", || metric(&other, "spillgate_store_up") == 0.0);
    let refused = settle(&other, &before, 5);
    assert!(refused.ends_with(" 503"), "{refused}");
    let id = reserve(&one, 10, 60);
    assert!(metric(&one, "spillgate_reservations") == 1.0);
    assert!(settle(&other, &id, 5).ends_with(" 503"));
    let settled = settle(&one, &id, 5);
    assert!(settled.contains("\"reserved\":10") && settled.ends_with(" 200"), "{settled}");
    redis.restart();
    until("that it is back", || metric(&other, "spillgate_store_up") == 1.0);
    assert!(settle(&other, &id, 5).ends_with(" 404"));
}
