//! What the next server knows.

use spillgate_testing::program;

use crate::common::server::{Home, Server, names, run, spillgate};
use crate::operate::clients::{Resp, spent};
use crate::operate::drain::{POLICY, THROTTLE};

fn spend_five(server: &Server) {
    let mut client = Resp::connect(server.resp).unwrap();
    for call in [THROTTLE, "SG.CHECK api 203.0.113.7"] {
        for _ in 0..5 {
            assert_eq!(client.ask(call).unwrap()[0], 0);
        }
    }
}

fn both_spent(server: &Server) -> [i64; 2] {
    [format!("{THROTTLE} 0"), "SG.CHECK api 203.0.113.7 0".to_owned()]
        .map(|look| spent(server.resp, &look))
}

#[test]
fn a_snapshot_that_cannot_be_used_is_set_aside_and_the_server_starts_empty() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    spend_five(&server);
    server.stop();
    let good = std::fs::read(home.path("state")).unwrap();
    let flipped = {
        let mut bytes = good.clone();
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    };
    let newer = {
        let mut bytes = good.clone();
        bytes["SPILLGATE".len()] = 9;
        bytes
    };
    let cases: [(&[u8], &str, &str); 5] = [
        (&flipped, "the checksum is wrong", "state.corrupt-1"),
        (&good[..good.len() / 2], "it ends too early", "state.corrupt-2"),
        (b"REDIS0011 and more", "it is not a snapshot of Spillgate", "state.corrupt-3"),
        (b"", "it is not a snapshot of Spillgate", "state.corrupt-4"),
        (&newer, "it is of version 9", "state.other-version-1"),
    ];
    for (bytes, why, aside) in cases {
        std::fs::write(home.path("state"), bytes).unwrap();
        let server = home.start(&[]);
        assert_eq!(both_spent(&server), [0, 0], "{why}");
        let log = server.stop();
        assert!(log.contains(why) && log.contains(aside), "{log}");
        assert_eq!(std::fs::read(home.path(aside)).unwrap(), bytes, "it can be looked into");
    }
    std::fs::write(home.path("state"), good).unwrap();
    let server = home.start(&[]);
    assert_eq!(both_spent(&server), [5, 5]);
    server.stop();
}

#[test]
fn overrides_and_lists_set_at_run_time_are_kept() {
    let home = Home::new(POLICY);
    let token = ["--token", "a token of some length".replace(' ', "-").leak()];
    let server = home.start(&token);
    let curl = |server: &Server, method: &str, path: &str, body: &str| {
        let mut curl = program("curl");
        curl.args(["-sS", "--fail-with-body", "-X", method, "-H"]);
        curl.arg(format!("authorization: Bearer {}", token[1]));
        if !body.is_empty() {
            curl.args(["-H", "content-type: application/json", "-d", body]);
        }
        run(curl.arg(server.url(path)))
    };
    let path = "/v1/limits/api/keys/203.0.113.7/override";
    curl(&server, "PUT", path, "{\"quota\":\"1/h burst 3\"}");
    curl(&server, "PUT", "/v1/lists/block/198.51.100.0%2F24", "");
    server.stop();
    let server = home.start(&token);
    let mut client = Resp::connect(server.resp).unwrap();
    assert_eq!(client.ask("SG.CHECK api 203.0.113.7").unwrap()[1], 3);
    assert_eq!(client.ask("SG.CHECK api 203.0.113.8").unwrap()[1], 1_000_000);
    assert!(curl(&server, "GET", "/v1/lists/block", "").contains("198.51.100.0/24"));
    server.stop();
}

#[test]
fn a_second_server_does_not_get_the_snapshots_of_the_first() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let second =
        spillgate().arg("serve").arg("-c").arg(home.path("spillgate.toml")).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let message = String::from_utf8(second.stderr).unwrap();
    assert!(message.contains("another server keeps its snapshots"), "{message}");
    server.stop();
}

#[test]
fn a_snapshot_that_cannot_be_written_is_told_and_the_last_one_stays() {
    let home = Home::new(POLICY);
    let server = home.start(&["--snapshot-interval", "100ms"]);
    crate::common::server::until("a snapshot", || home.path("state").exists());
    // A folder where the temporary file should be: not even the super-user writes that.
    let blocked = home.path("state.tmp");
    crate::common::server::until("the way is blocked", || {
        let _ = std::fs::create_dir_all(blocked.join("x"));
        server.get("/metrics").contains("spillgate_snapshot_writes_total{outcome=\"failed\"} 1")
    });
    spend_five(&server);
    server.signal("TERM");
    let (status, log) = server.wait();
    assert_eq!(status.code(), Some(1), "what was spent could not be kept\n{log}");
    assert!(log.contains("cannot write snapshot; the last one stays"), "{log}");
    std::fs::remove_dir_all(blocked).unwrap();
    let server = home.start(&[]);
    assert_eq!(both_spent(&server), [0, 0], "as in the last one that was written");
    server.stop();
}

#[test]
fn without_a_snapshot_no_file_is_written() {
    let config = "limit = []\n[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\n";
    let home = Home::new(config);
    let server = home.start(&[]);
    spend_key(&server);
    server.stop();
    assert_eq!(names(&home.path("")), ["spillgate.toml"]);
}

fn spend_key(server: &Server) {
    assert_eq!(Resp::connect(server.resp).unwrap().ask(THROTTLE).unwrap()[0], 0);
}

#[test]
fn a_debt_survives_a_restart_and_a_reload_that_only_adds_room() {
    let policy = |more: &str| {
        format!(
            "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\nsnapshot = 'state'\n\
             [[limit]]\nname = 'tokens'\nper = 'ip'\nquota = '1000/min'\n{more}"
        )
    };
    let home = Home::new(&policy(""));
    let server = home.start(&[]);
    let post = |server: &Server, path: &str, body: &str| {
        let mut curl = program("curl");
        curl.args(["-sS", "--fail-with-body", "-H", "content-type: application/json", "-d", body]);
        run(curl.arg(server.url(path)))
    };
    let reserve = |server: &Server, key: &str| {
        let body = format!("{{\"limit\":\"tokens\",\"key\":\"{key}\",\"cost\":500}}");
        let reserved = post(server, "/v1/reserve", &body);
        let (_, rest) = reserved.split_once("\"reservation\":\"").unwrap();
        rest[..32].to_owned()
    };
    let settle = |server: &Server, id: &str, cost: u64| {
        post(server, "/v1/settle", &format!("{{\"reservation\":\"{id}\",\"cost\":{cost}}}"))
    };
    let id = reserve(&server, "203.0.113.7");
    assert!(settle(&server, &id, 60_000).contains("\"uncharged\":0"));
    // A bound holds what a service reports by mistake.
    let id = reserve(&server, "203.0.113.8");
    let settled = settle(&server, &id, u64::MAX);
    assert!(!settled.contains("\"uncharged\":0"), "{settled}");
    let metrics = server.get("/metrics");
    assert!(metrics.contains("spillgate_uncharged_total{limit=\"tokens\"} 184467"), "{metrics}");

    // Denied for an hour less a minute, and for a day.
    let waits = |server: &Server| {
        ["203.0.113.7", "203.0.113.8"].map(|key| {
            let mut client = Resp::connect(server.resp).unwrap();
            let answer = client.ask(&format!("SG.CHECK tokens {key}")).unwrap();
            assert_eq!(answer[0], 1, "{answer:?}");
            answer[3]
        })
    };
    let owed = |[hour, day]: [i64; 2]| {
        assert!((3_400..=3_541).contains(&hour), "{hour} s");
        assert!((86_000..=86_401).contains(&day), "{day} s");
    };
    owed(waits(&server));
    home.write(&policy("capacity = 5000\nwhen-full = 'protect'\n"));
    server.signal("HUP");
    crate::common::server::until("a reload", || {
        server.get("/metrics").contains("spillgate_reloads_total{outcome=\"accepted\"} 1")
    });
    owed(waits(&server));
    let log = server.stop();
    assert!(log.contains("max-debt"), "{log}");
    let server = home.start(&[]);
    owed(waits(&server));
    server.stop();
}
