//! Two policies.

use spillgate_policy::Policy;
use spillgate_replay::Replay;

use super::{line, source};

#[test]
fn who_is_treated_differently_is_found() {
    let mut log = String::new();
    for second in 0..100 {
        log += &line(second, "203.0.113.1", "GET /");
        log += &line(second, "203.0.113.2", "POST /login");
        if second % 10 == 0 {
            log += &line(second, "203.0.113.3", "GET /");
        }
    }
    let policy = |text: &str| Policy::from_toml(text).unwrap();
    let first =
        policy("[[limit]]\nname = 'get'\nmatch = { method = 'GET' }\nquota = '1/min burst 20'");
    let other =
        policy("[[limit]]\nname = 'post'\nmatch = { method = 'POST' }\nquota = '1/min burst 20'");
    let report = Replay::new(first).compare(other).run(vec![source(log)], |_| ()).unwrap();
    let compared = report.comparison.as_ref().unwrap();
    // 20 and one more after a minute.
    assert_eq!((compared.newly_allowed, compared.newly_refused), (79, 79));
    assert_eq!((compared.allowed_by_both, compared.refused_by_both), (52, 0));
    let mut callers: Vec<_> = compared
        .callers
        .iter()
        .map(|it| (it.name.as_str(), it.newly_refused, it.newly_allowed))
        .collect();
    callers.sort_unstable();
    assert_eq!(callers, [("ip:203.0.113.1", 0, 79), ("ip:203.0.113.2", 79, 0)]);
    assert_eq!(compared.limits[0].denied, 79);
    let shown = report.to_string();
    assert!(shown.contains("newly refused             79"), "{shown}");
}
