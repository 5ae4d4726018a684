//! Reports in all forms.

use super::{line, replay};

const POLICY: &str = r#"
[[limit]]
name = "all"
quota = "1/min burst 3"

[[limit]]
name = "trial"
quota = "1/min burst 2"
mode = "shadow"
"#;

fn log() -> String {
    (0..600).step_by(5).map(|second| line(second, "203.0.113.7", "GET /users/4711")).collect()
}

#[test]
fn requests_are_counted_by_limit_caller_endpoint_and_time() {
    let report = replay(POLICY, log());
    assert_eq!(report.requests, 120);
    // Three at once, then one per minute.
    assert_eq!((report.allowed, report.refused), (12, 108));
    let all = &report.limits[0];
    assert_eq!((all.met, all.denied, all.peak_callers), (120, 108, 1));
    assert_eq!(report.limits[1].shadow_denied, report.shadow_denied);
    assert!(report.shadow_denied > 0);
    let (caller, endpoint) = (&report.callers[0], &report.endpoints[0]);
    assert_eq!((caller.name.as_str(), caller.refused), ("ip:203.0.113.7", 108));
    assert_eq!((endpoint.name.as_str(), endpoint.refused), ("GET /users/{id}", 108));
    assert_eq!(report.hours.len(), 1);
    assert_eq!(report.intervals.iter().map(|it| it.refused).sum::<u64>(), 108);
    // Refused for all of a minute but its first request.
    assert!((report.lockouts[0].seconds - 50.0).abs() < 6.0, "{:?}", report.lockouts[0]);
}

#[test]
fn json_and_csv_hold_the_same_numbers() {
    let report = replay(POLICY, log());
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!(json["refused"], 108);
    assert_eq!(json["limits"][0]["denied"], 108);
    assert_eq!(json["first"], "2026-11-17T12:00:00Z");
    let csv = report.to_csv();
    for row in ["total,\"\",12,108", "limit,\"all\",12,108,0", "endpoint,\"GET /users/{id}\","] {
        assert!(csv.contains(row), "{row}: {csv}");
    }
    let shown = report.to_string();
    for text in ["requests                 120", "denied                 108", "ip:203.0.113.7"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

#[test]
fn what_attackers_write_is_escaped_everywhere() {
    let path = "GET /<script>alert(1)</script>&\\x1b[31m\\x22\u{202e}=cmd";
    let report = replay(POLICY, line(0, "203.0.113.7", path).repeat(9));
    assert_eq!(report.refused, 6, "{report}");
    let html = report.to_html().unwrap();
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;"), "{html}");
    assert!(!html.contains("<script") && !html.contains('\u{1b}'), "{html}");
    assert!(!html.contains("http://") && !html.contains("src="), "{html}");
    let shown = report.to_string();
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    assert!(shown.contains("/<script>"), "{shown}");
}
