use std::thread::scope;

use spillgate_testing::effort;

use super::super::clients::{Http, Resp};
use super::{POLICY, flood, idle};
use crate::common::server::{Home, Server};

/// For as many keys there is room in each of the two tables.
const CAPACITY: u64 = 100_000;

/// What a key takes of a table, at most.
const KEY: u64 = 27;
/// What is resident of the program's code, as it is shipped.
const PROGRAM: u64 = 22 * 1024 * 1024;
/// What the program allocates with empty tables and no clients.
const ALLOCATED: u64 = 3 * 1024 * 1024;
/// What an idle client of the Redis protocol takes.
const RESP: u64 = 4 * 1024;
/// What an idle client takes that has made a check over HTTP.
const HTTP: u64 = 10 * 1024;
/// What an idle client takes that has asked for anything else over HTTP.
const OTHER: u64 = 24 * 1024;

const PING: &str = "PING\r\n";
const CHECK: &str = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n\
    content-type: application/json\r\ncontent-length: 29\r\n\r\n\
    {\"limit\":\"api\",\"key\":\"idler\"}";
const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// How many clients are idle, and how many keys there are in a flood: enough to fill the tables and
/// to drop as many again, or at the effort of 20 as many as docs/sizing.md says.
fn sizes() -> (usize, u64) {
    match effort() {
        1 => (4_000, 400_000),
        effort => (10_000, u64::from(effort) * 1_000_000),
    }
}

#[test]
fn thousands_of_idle_clients_and_a_flood_of_keys_take_no_more_than_is_stated() {
    let (clients, keys) = sizes();
    let room = idle::room_for(clients) as u64;
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let mut resp = Resp::connect(server.resp).unwrap();
    let mut http = Http::connect(server.http).unwrap();
    let begin = tell(&server, "at the beginning", 0);
    let code = server.memory("RssFile:");
    // How much there is depends on how it was built, and tests are built without optimisations.
    if effort() > 1 {
        assert!(code < PROGRAM, "{code} bytes of code before anyone has connected");
    }
    assert!(begin < ALLOCATED + 2 * CAPACITY * KEY, "{begin} bytes before anyone has connected");

    let kinds = [
        ("of the Redis protocol", server.resp, room / 2, PING, RESP),
        ("that checked over HTTP", server.http, room / 4, CHECK, HTTP),
        ("that asked something else", server.http, room / 4, HEALTH, OTHER),
    ];
    let mut clients = Vec::new();
    let mut idlers = 0;
    for (kind, address, count, request, most) in kinds {
        let before = server.memory("RssAnon:");
        clients.push((request, idle::connect(address, count as usize, request)));
        let each = tell(&server, kind, count).saturating_sub(before) / count;
        println!("{kind}: {each} bytes for each");
        assert!(each <= most, "{each} bytes for each client {kind}, not {most}");
        idlers += count * most;
    }

    // Spent before the flood, to the last call.
    let hot = "CL.THROTTLE hot 9 1 86400";
    assert_eq!(count_passed(20, || resp.ask(hot).unwrap()[0] == 0), 10);
    assert_eq!(count_passed(1010, || http.check("api", "hot").unwrap()), 1000);
    let (half, all) = (keys / 2, keys);
    let passed: u64 = scope(|scope| {
        let resp = scope.spawn(|| flood::resp(server.resp, 0..half));
        let http = scope.spawn(|| flood::http(server.http, half..all));
        resp.join().unwrap() + http.join().unwrap()
    });
    assert_eq!(passed, all, "a key that nobody has seen has not spent anything");

    let after = tell(&server, "after the flood", all);
    let stated = ALLOCATED + 2 * CAPACITY * KEY + idlers;
    assert!(after <= stated, "{after} bytes after the flood, and {stated} were stated");
    // Who had spent everything is not forgotten for those who have spent little.
    assert_ne!(resp.ask(hot).unwrap()[0], 0);
    assert!(!http.check("api", "hot").unwrap());
    assert_eq!(count_passed(20, || resp.ask("CL.THROTTLE late 9 1 86400").unwrap()[0] == 0), 10);
    assert_eq!(count_passed(1010, || http.check("api", "late").unwrap()), 1000);
    for (request, clients) in &mut clients {
        idle::ask_all(clients, request);
    }
    server.stop();
}

fn count_passed(calls: usize, mut passes: impl FnMut() -> bool) -> usize {
    (0..calls).filter(|_| passes()).count()
}

/// What the server holds, which is also printed for those who look.
fn tell(server: &Server, when: &str, count: u64) -> u64 {
    let (allocated, code) = (server.memory("RssAnon:"), server.memory("RssFile:"));
    println!("{when}: {count} more, {} KiB, and {} of code", allocated / 1024, code / 1024);
    allocated
}
