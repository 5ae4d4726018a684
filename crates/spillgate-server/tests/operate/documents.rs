//! What is written for operators is true.

use std::collections::BTreeSet;

use spillgate_testing::program;

use crate::common::redis::Redis;
use crate::common::server::{Home, run, spillgate, until};
use crate::operate::clients::{Http, Resp};

pub(crate) fn read(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    std::fs::read_to_string(format!("{root}{path}")).unwrap()
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let is_name = |character: char| character.is_ascii_lowercase() || character == '_';
    let words = text.split(|character| !is_name(character));
    words.filter(|word| word.starts_with("spillgate_")).collect()
}

#[test]
fn alerts_look_at_metrics_that_there_are() {
    let redis = Redis::start();
    let config = format!(
        "[server]\nhttp = '127.0.0.1:0'\nresp = '127.0.0.1:0'\nsnapshot = 'state'\n\
         [store]\nurl = '{}'\n[[limit]]\nname = 'api'\nquota = '5/s'\n",
        redis.url()
    );
    let server = Home::new(&config);
    let server = (server.start(&[]), server);
    assert!(Http::connect(server.0.http).unwrap().check("api", "203.0.113.7").unwrap());
    // Some are only there if callers are in memory.
    let own = Home::new(
        "[server]\nhttp = '127.0.0.1:0'\n[[limit]]\nname = 'api'\nquota = '5/s'\n\
         [[limit]]\nname = 'service'\nadaptive = { min = 1, max = 2 }\n\
         [[limit]]\nname = 'upstream'\nadaptive = { controller = 'errors' }\n",
    );
    let own = (own.start(&["--resp", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]), own);
    // Some are only there once a limit was moved.
    let mut resp = Resp::connect(own.0.resp).unwrap();
    until("an adaptive limit is moved", || {
        resp.send("SG.REPORT upstream 1 FAILED COUNT 50").unwrap();
        assert_eq!(resp.line().unwrap(), "+OK");
        own.0.get("/metrics").contains("spillgate_adaptive_changes_total{")
    });
    let shown = server.0.get("/metrics");
    assert!(!shown.contains("spillgate_live_callers{"), "who is in Redis is not known: {shown}");
    let shown = shown + &own.0.get("/metrics");
    let shown: BTreeSet<_> =
        shown.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    for document in [
        "deploy/alerts.yml",
        "docs/adaptive.md",
        "docs/alerts.md",
        "docs/server.md",
        "docs/sizing.md",
        "docs/cluster.md",
        "docs/envoy.md",
    ] {
        let text = read(document);
        let named = metrics(&text);
        assert!(!named.is_empty(), "{document}");
        let missing: Vec<_> = named.difference(&shown).collect();
        assert!(missing.is_empty(), "{document}: {missing:?}");
    }
    server.0.stop();
}

#[test]
fn promtool_finds_nothing_wrong_with_metrics_of_any_part() {
    let redis = Redis::start();
    let common = "http = '127.0.0.1:0'\nresp = '127.0.0.1:0'\ngrpc = '127.0.0.1:0'\n";
    let limit = "[[limit]]\nname = 'api'\nquota = '5/s'\n";
    let proxy = "[proxy]\nlisten = '127.0.0.1:0'\nto = 'http://127.0.0.1:9'\n";
    for config in [
        format!("[server]\n{common}snapshot = 'state'\n{proxy}{limit}"),
        format!("[server]\n{common}{proxy}[store]\nurl = '{}'\n{limit}", redis.url()),
    ] {
        let home = Home::new(&config);
        let server = home.start(&[]);
        assert!(Http::connect(server.http).unwrap().check("api", "203.0.113.7").unwrap());
        std::fs::write(home.path("metrics"), server.get("/metrics")).unwrap();
        let metrics = std::fs::File::open(home.path("metrics")).unwrap();
        let mut promtool = program("promtool");
        let checked = promtool.args(["check", "metrics"]).stdin(metrics).output().unwrap();
        assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
        server.stop();
    }
}

#[test]
fn every_alert_is_explained() {
    let (rules, page) = (read("deploy/alerts.yml"), read("docs/alerts.md"));
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let headings: String = page.lines().filter(|line| line.starts_with("## ")).collect();
    for alert in alerts {
        assert!(headings.contains(alert), "{alert}");
    }
}

/// The rows of the table of settings of a page.
fn settings(page: &str) -> Vec<String> {
    let page = read(page);
    let section = page.split("\n## All settings\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    section.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect()
}

#[test]
fn every_setting_is_in_the_table_and_its_default_as_help_says() {
    let help = run(spillgate().args(["serve", "--help"]));
    let (server, store) = (settings("docs/server.md"), settings("docs/cluster.md"));
    let flags = help.lines().filter_map(|line| line.trim().strip_prefix("--"));
    for flag in flags.filter_map(|flag| flag.split([' ', '[', '=']).next()) {
        let (key, rows) = match flag.strip_prefix("store") {
            _ if ["help", "config"].contains(&flag) => continue,
            Some("") => ("url", &store),
            Some(key) => (&key[1..], &store),
            None => (flag, &server),
        };
        assert!(rows.iter().any(|row| row.contains(&format!("`{key}`"))), "{flag}");
    }
    let flags = server.iter().map(|row| ("", row)).chain(store.iter().map(|row| ("store-", row)));
    for (prefix, row) in flags {
        let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`'));
        let (key, default) = (cells.nth(1).unwrap(), cells.next().unwrap());
        let message = help.split(&format!("--{prefix}{key} ")).nth(1);
        let message = message.and_then(|text| text.split("[env").next()).unwrap_or_default();
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(message) = message.split("[default: ").nth(1) {
            let is_words = !default.contains(|character: char| character.is_ascii_digit());
            assert!(is_words || message.starts_with(&format!("{default}]")), "{key}: {message}");
        }
    }
}
