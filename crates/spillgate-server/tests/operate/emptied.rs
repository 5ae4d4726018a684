//! A file that lost its limits by mistake lets nobody in, and forgives nobody.

use crate::common::server::{Home, Server, spillgate, until};
use crate::operate::clients::{Resp, spent};
use crate::operate::reload::reloads;

const SERVER: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\nsnapshot = 'state'\n";
const LIMIT: &str = "[[limit]]\nname = 'api'\nquota = '1/h burst 10'\n";
const LOOK: &str = "SG.CHECK api 203.0.113.7 0";

fn limited() -> String {
    format!("{SERVER}{LIMIT}")
}

fn unlimited() -> String {
    format!("limit = []\n{SERVER}")
}

fn spend(server: &Server, count: usize) {
    let mut client = Resp::connect(server.resp).unwrap();
    for _ in 0..count {
        assert_eq!(client.ask("SG.CHECK api 203.0.113.7").unwrap()[0], 0);
    }
}

fn reload(home: &Home, server: &Server, file: &str, is_done: impl FnMut() -> bool) {
    home.write(file);
    server.signal("HUP");
    until("the reload", is_done);
}

#[test]
fn an_emptied_file_is_refused_by_whoever_reads_it() {
    for text in ["", SERVER, "# [[limit]]\n", "block = ['192.0.2.7']\n"] {
        let home = Home::new(text);
        let file = home.path("spillgate.toml");
        for command in [&["serve", "--config"][..], &["check-config"]] {
            let output = spillgate().args(command).arg(&file).output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{command:?} {text:?}: {message}");
            assert!(message.contains("spillgate.toml:1:1: there are no limits"), "{message}");
            assert!(message.contains("`limit = []`"), "{message}");
        }
    }
    let home = Home::new(&unlimited());
    let checked =
        spillgate().arg("check-config").arg(home.path("spillgate.toml")).output().unwrap();
    assert!(checked.status.success());
}

#[test]
fn a_reload_of_an_emptied_file_leaves_the_limits_in_force() {
    let home = Home::new(&limited());
    let server = home.start(&[]);
    spend(&server, 7);
    for text in ["", SERVER] {
        let before = reloads(&server, "refused");
        reload(&home, &server, text, || reloads(&server, "refused") > before);
        assert!(server.get("/readyz").contains("there are no limits"));
        assert_eq!(spent(server.resp, LOOK), 7);
    }
    server.stop();
}

#[test]
fn a_limit_that_comes_back_after_a_reload_or_restarts_forgives_nobody() {
    let home = Home::new(&limited());
    let server = home.start(&[]);
    spend(&server, 7);
    let is_limited = |server: &Server| {
        let mut client = Resp::connect(server.resp).unwrap();
        client.ask(LOOK).is_ok()
    };
    reload(&home, &server, &unlimited(), || !is_limited(&server));
    reload(&home, &server, &limited(), || is_limited(&server));
    assert_eq!(spent(server.resp, LOOK), 7);
    server.stop();
    // Removed while no server runs, through two restarts.
    for file in [unlimited(), unlimited(), limited()] {
        home.write(&file);
        let server = home.start(&[]);
        if is_limited(&server) {
            assert_eq!(spent(server.resp, LOOK), 7);
        }
        server.stop();
    }
    // A crash after a reload does not forgive what the snapshot holds.
    let server = home.start(&["--snapshot-interval", "100ms"]);
    reload(&home, &server, &unlimited(), || !is_limited(&server));
    let writes = || {
        let metrics = server.get("/metrics");
        let name = "spillgate_snapshot_writes_total{outcome=\"written\"} ";
        let count = metrics.lines().find_map(|line| line.strip_prefix(name));
        count.unwrap_or_else(|| panic!("{metrics}")).parse::<u64>().unwrap()
    };
    let before = writes();
    until("two snapshots", || writes() >= before + 2);
    server.kill();
    home.write(&limited());
    let server = home.start(&[]);
    assert_eq!(spent(server.resp, LOOK), 7);
    server.stop();
}

#[test]
fn a_blank_file_is_refused_also_where_others_have_rules() {
    let home = Home::new("");
    std::fs::create_dir(home.path("rules")).unwrap();
    let rules = "domain: edge\ndescriptors:\n  - key: a\n    rate_limit: { unit: hour, requests_per_unit: 1 }\n";
    std::fs::write(home.path("rules/edge.yaml"), rules).unwrap();
    let check = || {
        let mut command = spillgate();
        command.arg("check-config").arg(home.path("spillgate.toml"));
        command.arg("--envoy-config").arg(home.path("rules")).output().unwrap()
    };
    let refused = check();
    assert!(!refused.status.success());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("there are no limits"));
    home.write(SERVER);
    assert!(check().status.success());
}
