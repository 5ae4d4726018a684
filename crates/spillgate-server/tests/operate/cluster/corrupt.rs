//! What stands under the key of a caller and cannot be read concerns that caller alone, and an
//! operator can delete it.

use super::{admin, config, metric, pair};
use crate::common::redis::Redis;
use crate::common::server::{Home, Server};
use crate::operate::clients::{Http, Resp};

const LIMIT: &str =
    "[[limit]]\nname = 'api'\nquota = '1/h burst 10'\nper = 'ip'\noutage = 'closed'\n";
const ALICE: &str = "203.0.113.7";
const PATH: &str = "/v1/limits/api/keys/203.0.113.7";

/// Scripts that spoil a key.
const SPOILED: [(&str, &str); 7] = [
    ("a text", "redis.call('SET', KEYS[1], 'garbage')"),
    ("nothing", "redis.call('SET', KEYS[1], '')"),
    ("less", "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, 20))"),
    ("more", "redis.call('APPEND', KEYS[1], string.rep('x', 300))"),
    (
        "a later version",
        "redis.call('SETRANGE', KEYS[1], 0, '\\3') redis.call('APPEND', KEYS[1], 'x')",
    ),
    ("a list", "redis.call('DEL', KEYS[1]) redis.call('LPUSH', KEYS[1], 'x')"),
    ("a hash", "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'x', 'y')"),
];

#[test]
fn a_reset_deletes_what_cannot_be_read_and_others_do_not_notice() {
    let redis = Redis::start();
    let (_home, [server, other]) = pair(&redis, LIMIT);
    let mut client = Http::connect(server.http).unwrap();
    assert!(client.check("api", ALICE).unwrap());
    let key = redis.tell("KEYS", "spillgate:{*}");
    assert!(!key.contains('\n'), "one caller: {key}");
    for (what, script) in SPOILED {
        let message = redis.script(script, &key);
        assert!(!message.contains("ERR"), "{what}: {message}");
        for server in [&server, &other] {
            let mut resp = Resp::connect(server.resp).unwrap();
            resp.send(&format!("SG.CHECK api {ALICE}")).unwrap();
            let refused = resp.line().unwrap();
            assert!(
                refused.starts_with("-ERR the shared store cannot be reached"),
                "{what}: {refused}"
            );
            assert_eq!(resp.ask("SG.CHECK api 203.0.113.8 0").unwrap()[0], 0, "{what}");
            // An operator is told what to do.
            let looked = admin(server, "GET", PATH, "");
            assert!(
                looked.contains("reset the caller") && looked.ends_with(" 503"),
                "{what}: {looked}"
            );
        }
        assert_eq!(admin(&server, "DELETE", PATH, ""), " 204", "{what}");
        for (server, left) in [(&server, 9), (&other, 8)] {
            let mut resp = Resp::connect(server.resp).unwrap();
            assert_eq!(
                resp.ask(&format!("SG.CHECK api {ALICE}")).unwrap()[..3],
                [0, 10, left],
                "{what}"
            );
        }
    }
    for server in [server, other] {
        assert!(metric(&server, "spillgate_store_up") == 1.0);
        assert!(metric(&server, "spillgate_store_outages_total") == 0.0);
        let log = server.stop();
        let lines = log.lines().filter(|line| line.contains("unreadable state of a caller"));
        let lines: Vec<_> = lines.collect();
        assert!(!lines.is_empty() && lines.len() <= 2 && lines[0].contains(&key), "{log}");
    }
}

#[test]
fn a_limit_that_starts_empty_is_well_again_too() {
    let redis = Redis::start();
    let limit = format!("{LIMIT}start = 'empty'\n");
    let home = Home::new(&config(&redis, &limit));
    let ask = |server: &Server| {
        let mut resp = Resp::connect(server.resp).unwrap();
        resp.send(&format!("SG.CHECK api {ALICE}")).unwrap();
        resp.line().unwrap()
    };
    assert_eq!(ask(&home.start(&[])), "*5");
    let key = redis.tell("KEYS", "spillgate:born:*");
    for (what, script) in [SPOILED[0], SPOILED[3], SPOILED[4], SPOILED[5]] {
        redis.script(script, &key);
        // One that has not asked before.
        let server = home.start(&[]);
        assert!(ask(&server).starts_with("-ERR"), "{what}");
        assert_eq!(admin(&server, "DELETE", PATH, ""), " 204", "{what}");
        assert_eq!(ask(&server), "*5", "{what}");
    }
}
