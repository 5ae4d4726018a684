//! Adaptive limits, in a real process: reports, the log, and a shutdown while permits are held.

use spillgate_testing::program;

use crate::common::server::{Home, Server, run, until};
use crate::operate::clients::Resp;

const POLICY: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\nlog-level = 'debug'\n\
    [[limit]]\nname = 'jobs'\nadaptive = { min = 1, max = 1 }\n\
    [[limit]]\nname = 'upstream'\nby-name = true\nadaptive = { controller = 'errors' }\n";

fn acquire(server: &Server) -> String {
    let mut resp = Resp::connect(server.resp).unwrap();
    resp.send("SG.ACQUIRE jobs PARTS 0 EX 600").unwrap();
    assert_eq!(resp.line().unwrap(), "*4");
    resp.line().unwrap()
}

/// The status that a proxy is told about a request.
fn auth(server: &Server) -> String {
    let mut curl = program("curl");
    curl.args(["-s", "--max-time", "60", "-o", "/dev/null", "-w", "%{http_code}"]);
    for header in [
        "x-original-uri: /x",
        "x-original-method: GET",
        "x-original-host: a",
        "x-real-ip: 192.0.2.1",
    ] {
        curl.args(["-H", header]);
    }
    run(curl.arg(server.url("/auth")))
}

/// The value of a sample.
fn sample(server: &Server, name: &str) -> Option<f64> {
    let metrics = server.get("/metrics");
    metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn reports_move_a_limit_and_the_log_says_where_and_why() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let mut resp = Resp::connect(server.resp).unwrap();
    let limit = "spillgate_adaptive_limit{limit=\"upstream\"}";
    assert_eq!(sample(&server, limit), Some(1.0));
    let mut report = |ending: &str| {
        resp.send(&format!("SG.REPORT upstream 0.01 {ending} COUNT 50")).unwrap();
        assert_eq!(resp.line().unwrap(), "+OK");
    };
    until("failures lower it", || {
        report("FAILED");
        sample(&server, limit).unwrap() < 0.8
    });
    let changes = "spillgate_adaptive_changes_total{limit=\"upstream\",reason=\"failures\"}";
    until("changes are counted", || sample(&server, changes).is_some_and(|count| count >= 1.0));
    let lowest = sample(&server, limit).unwrap();
    until("successes raise it", || {
        report("OK");
        sample(&server, limit).unwrap() > lowest
    });
    // The server looks at its limits a few times per second.
    let recovered = "spillgate_adaptive_changes_total{limit=\"upstream\",reason=\"recovered\"}";
    until("that is counted", || sample(&server, recovered).is_some());
    let log = server.stop();
    for (message, reason) in [("lowered", "failures"), ("raised", "recovered")] {
        let line = log.lines().find(|line| line.contains(&format!("adaptive limit {message}")));
        let line = line.unwrap_or_else(|| panic!("{message}: {log}"));
        assert!(line.contains("INFO") && line.contains("limit=\"upstream\""), "{line}");
        assert!(line.contains(&format!("reason=\"{reason}\"")), "{line}");
    }
}

#[test]
fn it_ends_in_order_while_permits_are_held_and_the_next_one_knows_of_none() {
    let home = Home::new(POLICY);
    let server = home.start(&["--shutdown-timeout", "5s"]);
    let permit = acquire(&server);
    assert_eq!(permit, "$64");
    assert_eq!(auth(&server), "503");
    assert_eq!(acquire(&server), "$-1");
    assert_eq!(sample(&server, "spillgate_adaptive_in_flight{limit=\"jobs\"}"), Some(1.0));
    let log = server.stop();
    let shed = log.lines().find(|line| line.contains("shed")).unwrap_or_else(|| panic!("{log}"));
    assert!(shed.contains("WARN") && shed.contains("limit=\"jobs\""), "{shed}");
    assert!(shed.contains("class=\"normal\""), "{shed}");

    let server = home.start(&[]);
    assert_eq!(auth(&server), "200");
    server.stop();
}

#[test]
fn a_reload_keeps_where_the_limit_is_and_who_holds_permits() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let mut resp = Resp::connect(server.resp).unwrap();
    let limit = "spillgate_adaptive_limit{limit=\"upstream\"}";
    until("failures lower it", || {
        resp.send("SG.REPORT upstream 0.01 FAILED COUNT 50").unwrap();
        assert_eq!(resp.line().unwrap(), "+OK");
        sample(&server, limit).unwrap() < 0.8
    });
    let lowered = sample(&server, limit).unwrap();
    assert_eq!(acquire(&server), "$64");
    home.write(&POLICY.replace("min = 1, max = 1", "min = 1, max = 2"));
    let max = "spillgate_adaptive_limit_max{limit=\"jobs\"}";
    until("the new bound is in force", || sample(&server, max) == Some(2.0));
    assert_eq!(sample(&server, "spillgate_adaptive_in_flight{limit=\"jobs\"}"), Some(1.0));
    assert_eq!(sample(&server, limit), Some(lowered));
    server.stop();
}
