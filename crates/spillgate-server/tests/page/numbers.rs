//! What the page counts is what `/metrics` counts.

use std::collections::BTreeMap;

use super::tab::Tab;
use super::{by, start};
use crate::common::server::{Server, until};
use crate::operate::clients::{Http, Resp};

/// Counts by name: a limit and an outcome, or a total.
type Counts = BTreeMap<String, u64>;

fn metrics(server: &Server) -> Counts {
    let text = server.get("/metrics");
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let label = |key: &str| {
            let rest = name.split(&format!("{key}=\"")).nth(1)?;
            rest.split('"').next().map(|value| value.replace('-', "_"))
        };
        let limit = label("limit");
        let name = match (name.split('{').next().unwrap(), limit) {
            ("spillgate_requests_total", Some(limit)) => {
                format!("{limit} {}", label("outcome").unwrap())
            }
            ("spillgate_shed_total", Some(limit)) => format!("{limit} shed"),
            ("spillgate_live_callers", Some(limit)) => format!("{limit} callers"),
            (name, None) => {
                let name = name.strip_prefix("spillgate_").and_then(|it| it.strip_suffix("_total"));
                let Some(name) = name.filter(|name| TOTALS.contains(name)) else { continue };
                name.to_owned()
            }
            _ => continue,
        };
        counts.insert(name, value.parse().unwrap());
    }
    counts.retain(|_, count| *count > 0);
    counts
}

const TOTALS: [&str; 6] =
    ["unlimited", "blocked", "banned", "shadow_banned", "without_host", "store_errors"];

fn shown(tab: &mut Tab) -> Counts {
    let found = tab.eval(
        "[...document.querySelectorAll('[data-field][data-value]'), \
          ...document.querySelectorAll('[data-total]')] \
         .map((node) => [node.dataset.total ?? `${node.dataset.limit} ${node.dataset.field}`, \
          Number(node.dataset.value), node.textContent])",
    );
    let mut counts = Counts::new();
    for entry in found.as_array().unwrap() {
        let (name, count) = (entry[0].as_str().unwrap(), entry[1].as_u64().unwrap());
        // The text is the same number, for people.
        let text = entry[2].as_str().unwrap().split(' ').next().unwrap().replace(',', "");
        assert_eq!(text, count.to_string(), "{entry}");
        let is_sum = ["allowed", "denied", "shadow_denied", "shed"].contains(&name);
        if count > 0 && !is_sum {
            counts.insert(name.to_owned(), count);
        }
    }
    counts
}

#[test]
fn numbers_equal_metrics_after_traffic_over_http_over_resp_and_by_name() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    let mut http = Http::connect(server.http).unwrap();
    for _ in 0..8 {
        http.post(&by("203.0.113.7")).unwrap();
    }
    for _ in 0..3 {
        http.check("login", "42").unwrap();
    }
    let mut resp = Resp::connect(server.resp).unwrap();
    for _ in 0..4 {
        resp.ask("CL.THROTTLE user:42 1 2 3600").unwrap();
        resp.ask("SG.CHECK login 43").unwrap();
    }
    let expected = metrics(&server);
    for (name, count) in [
        ("api denied", 3),
        ("api allowed", 5),
        ("trial shadow_denied", 3),
        ("login denied", 3),
        ("login allowed", 4),
        ("cl.throttle denied", 2),
        ("api callers", 1),
    ] {
        assert_eq!(expected.get(name), Some(&count), "{name} in {expected:?}");
    }
    let mut last = Counts::new();
    until("the page shows the counts of /metrics", || {
        let now = shown(&mut tab);
        if now != last {
            eprintln!("shown: {now:?}, expected: {expected:?}");
        }
        last = now;
        last == expected
    });
    // Nothing is counted by looking.
    assert_eq!(metrics(&server), expected);
    tab.end(&[]);
}

#[test]
fn a_denied_caller_appears_within_two_seconds() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    let begin = tab.eval(
        "window.seen = new Promise((resolve) => { const look = setInterval(() => { \
           const row = document.querySelector('[data-caller=\"caller=203.0.113.9\"]'); \
           if (row?.querySelector('.denied [data-value]').dataset.value !== '2') return; \
           clearInterval(look); resolve(Date.now()); }, 20); }); Date.now()",
    );
    let mut http = Http::connect(server.http).unwrap();
    for _ in 0..7 {
        http.post(&by("203.0.113.9")).unwrap();
    }
    let seen = tab.eval("window.seen");
    let wait = seen.as_f64().unwrap() - begin.as_f64().unwrap();
    assert!(wait < 2000.0, "{wait} ms");
    tab.end(&[]);
}

#[test]
fn a_page_that_is_opened_later_shows_what_happened_before() {
    let (_home, server) = start();
    // What was counted before the server looks for the first time has no second.
    until("a history", || server.get("/v1/history?minutes=5").contains("0],\"blocked\""));
    let mut http = Http::connect(server.http).unwrap();
    for _ in 0..9 {
        http.post(&by("203.0.113.9")).unwrap();
    }
    let denied = "fetch('v1/history?minutes=5').then((answer) => answer.json()).then((history) => \
        history.limits.find(({ name }) => name === 'api')?.denied.reduce((sum, n) => sum + n, 0) === 4)";
    let mut tab = Tab::live(&server.url("/"));
    tab.wait("the server remembers it", denied);
    let total = "import('/assets/history.js').then(async ({ History }) => { \
        const answer = await fetch('v1/history?minutes=MINUTES'); \
        return Math.round(new History(await answer.json(), { time: 0, limits: [], total: {} }).total('denied', 'api')); })";
    for minutes in ["5", "15"] {
        let total = total.replace("MINUTES", minutes);
        tab.wait(&format!("{minutes} minutes"), &format!("{total}.then((n) => n === 4)"));
        tab.click(&format!("#range input[value='{minutes}']"));
        let label = "document.querySelector('#chart-refused svg.chart-plot').ariaLabel";
        tab.wait("the range", &format!("{label}.includes('last {minutes} minutes')"));
        let peak = "(() => { const path = document.querySelector('#chart-refused .chart-plot \
            .line.denied').getAttribute('d') ?? ''; const heights = [...path.matchAll(/[ML][\\d.]+ \
            ([\\d.]+)/g)].map((match) => Number(match[1])); \
            return heights.length > 0 && Math.max(...heights) - Math.min(...heights) > 20; })()";
        tab.wait("the chart has a peak", peak);
    }
    tab.end(&[]);
}
