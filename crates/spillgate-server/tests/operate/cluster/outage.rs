//! While Redis is away each limit does what its `outage` says, and soon after it is back all
//! is as before.

use std::time::Duration;

use spillgate::{Clock, SystemClock};
use spillgate_testing::program;

use super::{admin, metric, pair};
use crate::common::redis::Redis;
use crate::common::server::{Server, run, until};
use crate::operate::clients::{Http, Resp};

const LIMITS: &str = "\
    [[limit]]\nname = 'local'\nquota = '1/h burst 10'\nper = 'ip'\n\
    [[limit]]\nname = 'open'\nquota = '1/h burst 10'\nper = 'ip'\noutage = 'open'\n\
    [[limit]]\nname = 'closed'\nquota = '1/h burst 10'\nper = 'ip'\noutage = 'closed'\n";

/// The status and the head of a check of a limit.
fn checked(server: &Server, limit: &str) -> String {
    let body = format!("{{\"limit\":\"{limit}\",\"key\":\"203.0.113.7\"}}");
    let mut curl = program("curl");
    run(curl.args(["-sSi", "--max-time", "60", "--json", &body]).arg(server.url("/v1/check")))
}

const ADDRESS: &str = "X-Real-IP: 203.0.113.7";

fn is_up(server: &Server) -> bool {
    metric(server, "spillgate_store_up") == 1.0
}

#[test]
fn each_outage_is_what_clients_see_until_redis_is_back() {
    let mut redis = Redis::start();
    let (_home, servers) = pair(&redis, LIMITS);
    until("that each knows of the other", || {
        servers.iter().all(|server| metric(server, "spillgate_store_nodes") == 2.0)
    });
    redis.kill();
    for server in &servers {
        until("that it is missed", || !is_up(server));
        let closed = checked(server, "closed");
        assert!(closed.starts_with("HTTP/1.1 503 "), "{closed}");
        assert!(closed.contains("retry-after: 1"), "{closed}");
        assert!(closed.contains("\"detail\":\"the shared store cannot be reached\""), "{closed}");
        assert!(!closed.contains(&redis.port().to_string()), "clients learn no address: {closed}");
        let mut curl = program("curl");
        for header in ["X-Original-Method: GET", "X-Original-Uri: /", "X-Original-Host: a", ADDRESS]
        {
            curl.args(["-H", header]);
        }
        let auth = run(curl.args(["-sSi", "--max-time", "60"]).arg(server.url("/auth")));
        assert!(auth.starts_with("HTTP/1.1 503 "), "{auth}");
        assert!(!auth.contains(&redis.port().to_string()), "{auth}");
        // Operators do.
        let looked = admin(server, "GET", "/v1/limits/closed/keys/203.0.113.7", "");
        assert!(looked.contains("cannot be reached") && looked.contains("127.0.0.1"), "{looked}");
        let mut client = Http::connect(server.http).unwrap();
        let mut admitted =
            |limit| (0..20).filter(|_| client.check(limit, "203.0.113.7").unwrap()).count();
        assert_eq!(admitted("open"), 20);
        // Its share, as one of two.
        assert_eq!(admitted("local"), 5);
        let ready = server.get("/readyz");
        assert!(
            ready.contains("\"status\":\"ready\"") && ready.contains("cannot be reached"),
            "{ready}"
        );
        let mut client = Resp::connect(server.resp).unwrap();
        client.send("SG.CHECK closed 203.0.113.7").unwrap();
        assert!(client.line().unwrap().starts_with("-ERR the shared store cannot be reached"));
        assert_eq!(client.ask("SG.CHECK open 203.0.113.7").unwrap(), [0, 0, 0, -1, 0]);
        let throttled = (0..20).filter(|_| client.ask("CL.THROTTLE k 9 1 3600").unwrap()[0] == 0);
        assert_eq!(throttled.count(), 5);
        for mode in ["open", "closed", "local"] {
            let name = format!("spillgate_store_decisions_total{{source=\"outage-{mode}\"}}");
            assert!(metric(server, &name) > 0.0, "{mode}");
        }
        assert!(metric(server, "spillgate_store_errors_total") >= 2.0);
    }
    redis.restart();
    for server in &servers {
        until("that it is back", || is_up(server));
        assert!(server.get("/readyz").contains("\"outage\":null"));
    }
    // It has forgotten everything, and is shared again.
    let admitted: usize = servers
        .iter()
        .map(|server| {
            let mut client = Http::connect(server.http).unwrap();
            (0..8).filter(|_| client.check("closed", "203.0.113.7").unwrap()).count()
        })
        .sum();
    assert_eq!(admitted, 10);
    for server in servers {
        let log = server.stop();
        assert!(log.contains("Redis is down") && log.contains("Redis is up"), "{log}");
    }
}

#[test]
fn a_closed_outage_has_a_line_at_its_begin_and_its_end_and_none_for_each_request() {
    let mut redis = Redis::start();
    let (_home, [server, _other]) = pair(&redis, LIMITS);
    redis.kill();
    until("that it is missed", || !is_up(&server));
    let begin = SystemClock.now();
    let elapsed = || SystemClock.now().since(begin);
    let mut refused = 0;
    while refused < 200 || elapsed() < Duration::from_secs(3) {
        let mut client = Resp::connect(server.resp).unwrap();
        for _ in 0..20 {
            client.send("SG.CHECK closed 203.0.113.7").unwrap();
            refused += u32::from(client.line().unwrap().starts_with("-ERR"));
        }
    }
    let minutes = elapsed().as_secs() / 60;
    redis.restart();
    until("that it is back", || is_up(&server));
    let log = server.stop();
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(lines("Redis is down"), 1, "{log}");
    // Once at the start.
    assert_eq!(lines("Redis is up"), 2, "{log}");
    // A summary once a minute.
    assert!(lines("the store could not answer") <= 1 + minutes as usize, "{log}");
}
