//! What is spent at one server is spent at all of them.

use std::thread::spawn;

use spillgate_testing::program;

use super::{admin, config, metric, pair};
use crate::common::redis::Redis;
use crate::common::server::{Home, Server, run};
use crate::operate::clients::{Http, Resp};

const LIMIT: &str = "[[limit]]\nname = 'api'\nquota = '1/h burst 400'\nper = 'ip'\n";

#[test]
fn exactly_the_burst_is_admitted_whatever_is_asked_where() {
    let redis = Redis::start();
    let (_home, servers) = pair(&redis, LIMIT);
    let mut clients = Vec::new();
    for server in &servers {
        let (http, resp) = (server.http, server.resp);
        for _ in 0..3 {
            clients.push(spawn(move || {
                let mut client = Http::connect(http).unwrap();
                (0..60).filter(|_| client.check("api", "203.0.113.7").unwrap()).count()
            }));
            clients.push(spawn(move || {
                let mut client = Resp::connect(resp).unwrap();
                // A pipeline, which is decided at once.
                for _ in 0..60 {
                    client.send("SG.CHECK api 203.0.113.7").unwrap();
                }
                (0..60).filter(|_| client.five().unwrap()[0] == 0).count()
            }));
        }
        let headers = [
            "X-Original-Method: GET",
            "X-Original-Uri: /",
            "X-Original-Host: example.com",
            "X-Real-IP: 203.0.113.7",
        ];
        let url = server.url("/auth");
        clients.push(spawn(move || {
            let auth = |_: &i32| {
                let mut curl = program("curl");
                curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "60"]);
                for header in headers {
                    curl.args(["-H", header]);
                }
                let status = run(curl.arg(&url));
                assert!(["200", "429"].contains(&status.as_str()), "{status}");
                status == "200"
            };
            (0..10).filter(auth).count()
        }));
    }
    let admitted: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert_eq!(admitted, 400);
    for server in &servers {
        assert!(metric(server, "spillgate_store_decisions_total{source=\"store\"}") > 0.0);
        assert!(metric(server, "spillgate_store_up") == 1.0);
    }
}

#[test]
fn a_pipeline_is_answered_in_its_order() {
    let redis = Redis::start();
    let (_home, [server, other]) = pair(&redis, LIMIT);
    let mut client = Resp::connect(server.resp).unwrap();
    client
        .send(
            "PING\r\nSG.CHECK api 1.1.1.1 3\r\nSG.CHECK api 1.1.1.2 5\r\nSG.CHECK none x\r\n\
                 CL.THROTTLE k 9 1 60 4\r\nECHO x",
        )
        .unwrap();
    assert_eq!(client.line().unwrap(), "+PONG");
    assert_eq!(client.five().unwrap()[2], 397);
    assert_eq!(client.five().unwrap()[2], 395);
    assert!(client.line().unwrap().contains("there is no limit"));
    assert_eq!(client.five().unwrap()[2], 6);
    assert_eq!([client.line().unwrap(), client.line().unwrap()], ["$1", "x"]);
    // A transaction is one question too, and other servers see what it has spent.
    client.send("MULTI\r\nCL.THROTTLE k 9 1 60\r\nPING\r\nSG.CHECK api 1.1.1.1\r\nEXEC").unwrap();
    for reply in ["+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*3"] {
        assert_eq!(client.line().unwrap(), reply);
    }
    assert_eq!(client.five().unwrap()[2], 5);
    assert_eq!(client.line().unwrap(), "+PONG");
    assert_eq!(client.five().unwrap()[2], 396);
    let mut client = Resp::connect(other.resp).unwrap();
    assert_eq!(client.ask("CL.THROTTLE k 9 1 60 0").unwrap()[2], 5);
    assert_eq!(client.ask("SG.CHECK api 1.1.1.1 0").unwrap()[2], 396);
}

#[test]
fn a_key_of_cl_throttle_has_a_time_and_not_tokens_whatever_the_quota() {
    let redis = Redis::start();
    let (_home, [one, other]) = pair(&redis, LIMIT);
    let mut one = Resp::connect(one.resp).unwrap();
    let mut other = Resp::connect(other.resp).unwrap();
    // An hour is owed.
    assert_eq!(one.ask("CL.THROTTLE k 9 10 3600 10").unwrap(), [0, 10, 0, -1, 3600]);
    let [limited, limit, remaining, retry_after, _] = other.ask("CL.THROTTLE k 5 1 60").unwrap();
    assert_eq!([limited, limit, remaining], [1, 6, 0]);
    // All of it, but for five minutes that the smaller bucket holds.
    assert!((3290..=3300).contains(&retry_after), "{retry_after}");
    // By the word that is remembered.
    assert_eq!(other.ask("CL.THROTTLE k 5 1 60").unwrap()[0], 1);
}

#[test]
fn what_an_operator_changes_at_one_server_counts_at_the_other() {
    let redis = Redis::start();
    let (_home, [one, other]) = pair(&redis, LIMIT);
    let path = "/v1/limits/api/keys/203.0.113.7";
    let quota = admin(&one, "PUT", &format!("{path}/override"), "{\"quota\":\"1/h burst 3\"}");
    assert_eq!(quota, " 204");
    let mut client = Http::connect(other.http).unwrap();
    let admitted = (0..6).filter(|_| client.check("api", "203.0.113.7").unwrap()).count();
    assert_eq!(admitted, 3);
    // What cannot be counted is refused, and is no outage.
    let refused = admin(&one, "PUT", &format!("{path}/override"), "{\"quota\":\"0/h\"}");
    assert!(refused.ends_with(" 400") || refused.ends_with(" 422"), "{refused}");
    assert_eq!(admin(&one, "DELETE", path, ""), " 204");
    let looked = admin(&other, "GET", path, "");
    assert!(looked.contains("\"remaining\":3"), "{looked}");
    assert_eq!(admin(&other, "DELETE", &format!("{path}/override"), ""), " 204");
    let looked = admin(&one, "GET", path, "");
    assert!(looked.contains("\"max\":400"), "{looked}");
}

#[test]
fn a_reload_and_a_restart_keep_what_was_spent() {
    let redis = Redis::start();
    let home = Home::new(&config(&redis, LIMIT));
    let server = home.start(&[]);
    let ask = |server: &Server, cost| {
        let mut client = Resp::connect(server.resp).unwrap();
        client.ask(&format!("SG.CHECK api 203.0.113.7 {cost}")).unwrap()
    };
    assert_eq!(ask(&server, 100)[2], 300);
    let file = config(&redis, LIMIT).replace("burst 400", "burst 1000");
    home.write(&file.replace("[store]", "[store]\nkey-prefix = 'other:'"));
    server.signal("HUP");
    crate::common::server::until("a reload", || ask(&server, 0)[1] == 1000);
    // In tokens, as in memory.
    assert_eq!(ask(&server, 0)[2], 900);
    let log = server.stop();
    assert!(log.contains("changed settings need a restart settings=[store.key-prefix]"), "{log}");
    home.write(&file);
    let server = home.start(&[]);
    assert_eq!(ask(&server, 0)[2], 900);
}
