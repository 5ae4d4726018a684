//! What ends by itself on a running server, across restarts, and from the command line.

use serde_json::Value;
use spillgate::{Clock, SystemClock};
use spillgate_testing::program;

use crate::common::server::{Home, Server, run, spillgate, until};
use crate::operate::drain::POLICY;

const TOKEN: &str = "a-token-of-some-length";
const ENTRY: &str = "/v1/lists/block/203.0.113.50";

fn curl(server: &Server, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut curl = program("curl");
    curl.args(["-sS", "-w", "\n%{http_code}", "-X", method, "-H"]);
    curl.arg(format!("authorization: Bearer {TOKEN}"));
    if !body.is_empty() {
        curl.args(["-H", "content-type: application/json", "-d", body]);
    }
    let printed = run(curl.arg(server.url(path)));
    let (body, status) = printed.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}

fn is_blocked(server: &Server, ip: &str) -> bool {
    let body = format!("{{\"request\":{{\"path\":\"/\",\"ip\":\"{ip}\"}}}}");
    curl(server, "POST", "/v1/check", &body).1["blocked"] == true
}

fn quota_of(server: &Server, caller: &str) -> u64 {
    let path = format!("/v1/limits/api/keys/{caller}");
    curl(server, "GET", &path, "").1["max"].as_u64().unwrap()
}

#[test]
fn an_entry_and_an_override_end_by_themselves() {
    let home = Home::new(POLICY);
    let server = home.start(&["--token", TOKEN]);
    let usual = quota_of(&server, "203.0.113.7");
    assert_eq!(curl(&server, "PUT", ENTRY, r#"{"ttl":"1s","comment":"scan"}"#).0, 200);
    let own = "/v1/limits/api/keys/203.0.113.7/override";
    assert_eq!(curl(&server, "PUT", own, r#"{"quota":"1/h burst 3","ttl":1}"#).0, 204);
    until("the entry has ended", || !is_blocked(&server, "203.0.113.50"));
    assert_eq!(curl(&server, "GET", ENTRY, "").0, 404);
    until("the override has ended", || quota_of(&server, "203.0.113.7") == usual);
    assert_eq!(curl(&server, "GET", "/v1/overrides", "").1["overrides"], serde_json::json!([]));
    server.stop();
}

#[test]
fn what_is_to_end_survives_restarts_and_crashes_and_ends_in_time() {
    let home = Home::new(POLICY);
    let start = || home.start(&["--token", TOKEN, "--snapshot-interval", "100ms"]);
    let server = start();
    let usual = quota_of(&server, "203.0.113.7");
    let put = |entry: &str, body: &str| {
        let path = format!("/v1/lists/block/{entry}");
        assert_eq!(curl(&server, "PUT", &path, body).0, 200);
    };
    put("203.0.113.50", r#"{"ttl":"1h","comment":"scan"}"#);
    put("203.0.113.51", "");
    put("203.0.113.52", r#"{"ttl":4}"#);
    put("203.0.113.53", r#"{"ttl":1}"#);
    let own = "/v1/limits/api/keys/203.0.113.7/override";
    assert_eq!(curl(&server, "PUT", own, r#"{"quota":"1/h burst 3","ttl":"1h"}"#).0, 204);
    let expires = curl(&server, "GET", ENTRY, "").1["expires"].clone();
    server.stop();
    let server = start();
    let writes = |server: &Server| {
        let metrics = server.get("/metrics");
        let line = "spillgate_snapshot_writes_total{outcome=\"written\"} ";
        let count = metrics.split(line).nth(1).and_then(|rest| rest.lines().next()).unwrap();
        count.parse::<u64>().unwrap()
    };
    until("two snapshots", || writes(&server) >= 2);
    server.kill();
    let server = start();
    let shown = curl(&server, "GET", ENTRY, "").1;
    assert_eq!(shown["comment"], "scan");
    // Rounded down to a second, on a clock that was read once more.
    let second = |time: &Value| time.as_str().unwrap()[17..19].parse::<i64>().unwrap();
    let moved = (second(&shown["expires"]) - second(&expires)).rem_euclid(60);
    assert!([0, 1, 59].contains(&moved), "{shown} {expires}");
    assert!(is_blocked(&server, "203.0.113.50") && is_blocked(&server, "203.0.113.51"));
    assert_eq!(quota_of(&server, "203.0.113.7"), 3);
    assert_ne!(usual, 3);
    until("one has ended", || !is_blocked(&server, "203.0.113.52"));
    until("the other one has, too", || !is_blocked(&server, "203.0.113.53"));
    server.stop();
}

#[test]
fn lists_and_overrides_are_shown_and_changed_from_the_command_line() {
    let home = Home::new(POLICY);
    let server = home.start(&["--token", TOKEN]);
    let command = |arguments: &[&str]| {
        let mut command = spillgate();
        command.env("SPILLGATE_TOKEN", TOKEN).args(arguments).args(["--server", &server.url("")]);
        command
    };
    let done = |arguments: &[&str]| run(&mut command(arguments));
    assert_eq!(done(&["list", "block"]), "no entries\n");
    let add = ["list", "block", "add", "192.0.2.0/24", "--for", "1h", "--comment", "port scan"];
    assert_eq!(done(&add), "added\n");
    assert_eq!(done(&["list", "block", "add", "key:a/b c"]), "added\n");
    assert_eq!(done(&["list", "block", "add", "key:a/b c"]), "unchanged: it was there\n");
    let shown = done(&["list", "block", "show"]);
    let rows: Vec<Vec<_>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ENTRY", "EXPIRES", "SOURCE", "COMMENT"]);
    assert_eq!((rows[1][0], rows[1][2], rows[1][4]), ("192.0.2.0/24", "run-time", "scan"));
    assert_eq!(
        shown.lines().nth(2).unwrap().find("run-time"),
        shown.lines().next().unwrap().find("SOURCE")
    );
    assert_eq!(rows.len(), 3);
    let json: Value = serde_json::from_str(&done(&["list", "block", "--json"])).unwrap();
    assert_eq!(json["entries"][1]["entry"], "key:a/b c");
    assert_eq!(done(&["list", "block", "remove", "key:a/b c"]), "removed\n");
    assert_eq!(done(&["list", "block", "remove", "key:a/b c"]), "unchanged: it was not there\n");
    assert_eq!(done(&["list", "allow"]), "no entries\n");

    assert_eq!(done(&["override", "list"]), "no overrides\n");
    let year = std::time::Duration::from_secs(365 * 86_400);
    let later = spillgate_policy::rfc3339::format(SystemClock.now() + year);
    let set = ["override", "set", "api", "203.0.113.7", "1/h burst 3"];
    assert_eq!(done(&[&set[..], &["--expires", &later]].concat()), "set\n");
    for list in [&["override", "list"][..], &["override", "list", "api"]] {
        let shown = done(list);
        assert!(shown.starts_with("LIMIT  KEY          QUOTA        EXPIRES"), "{shown}");
        assert!(shown.contains(&format!("api    203.0.113.7  1/h burst 3  {later}")), "{shown}");
    }
    assert_eq!(quota_of(&server, "203.0.113.7"), 3);
    assert_eq!(done(&["override", "remove", "api", "203.0.113.7"]), "removed\n");
    assert_eq!(done(&["override", "list", "--json"]), "{\"overrides\":[]}\n");

    for (arguments, code, expected) in [
        (&["list", "grey"][..], 2, "allow, block"),
        (&["list", "block", "add"], 2, "<ENTRY>"),
        (&["list", "block", "add", "nobody"], 1, "refused: write an address"),
        (&["list", "block", "add", "192.0.2.1", "--for", "soon"], 1, "write a duration"),
        (&["list", "block", "add", "192.0.2.1", "--for", "1h", "--expires", "x"], 2, "--expires"),
        (&["override", "list", "apj"], 1, "there is no limit \"apj\""),
        (&["override", "set", "api", "nobody", "1/s"], 1, "not a caller"),
        (&["override", "set", "api", "203.0.113.7", "fast"], 1, "quota \"fast\""),
        (&["list", "block", "--token", "wrong"], 1, "set SPILLGATE_TOKEN"),
    ] {
        let output = command(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{message}");
        assert!(message.contains(expected), "{arguments:?}\n{message}");
    }
    server.stop();
}

#[test]
fn a_ban_survives_restarts_and_is_seen_and_lifted_from_the_command_line() {
    let home = Home::new(POLICY);
    let server = home.start(&["--token", TOKEN]);
    let banned = |server: &Server, ip: &str| {
        let body = format!("{{\"request\":{{\"path\":\"/\",\"ip\":\"{ip}\"}}}}");
        curl(server, "POST", "/v1/check", &body).1["banned"] == true
    };
    let done = |server: &Server, arguments: &[&str]| {
        let mut command = spillgate();
        command.env("SPILLGATE_TOKEN", TOKEN).args(arguments).args(["--server", &server.url("")]);
        run(&mut command)
    };
    assert_eq!(done(&server, &["ban"]), "no bans\n");
    let add = ["ban", "add", "203.0.113.50", "--for", "1h", "--reason", "port scan"];
    assert!(done(&server, &add).starts_with("banned until 20"));
    assert!(done(&server, &["ban", "add", "203.0.113.51", "--for", "2s"]).starts_with("banned"));
    assert!(banned(&server, "203.0.113.50") && banned(&server, "203.0.113.51"));
    server.stop();
    let server = home.start(&["--token", TOKEN]);
    assert!(banned(&server, "203.0.113.50"), "it lasts");
    until("the short one has ended", || !banned(&server, "203.0.113.51"));
    let shown = done(&server, &["ban", "show"]);
    let rows: Vec<Vec<_>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["CALLER", "EXPIRES", "COUNT", "MODE", "REASON"]);
    assert_eq!(rows[1][0], "203.0.113.50");
    assert_eq!(rows[1][2..], ["1", "enforce", "port", "scan"]);
    assert_eq!(rows.len(), 2, "{shown}");
    assert_eq!(done(&server, &["ban", "lift", "203.0.113.50"]), "lifted\n");
    assert!(!banned(&server, "203.0.113.50"));
    assert_eq!(done(&server, &["ban", "--json"]), "{\"bans\":[]}\n");
    server.stop();
}
