//! What is said of adaptive limits.

use spillgate_policy::Answer;

use super::{ALICE, service};
use crate::common::{gate, get};

#[test]
fn an_explanation_says_where_the_limit_is_and_why() {
    let policy = service("min = 1, max = 2") + "[priority]\ndefault = 'low'\n";
    let (gate, _) = gate(&policy);
    let first = get(ALICE, "/").through(&gate);
    let explained = get(ALICE, "/").explained(&gate);
    assert_eq!(explained.answer, Answer::Allowed);
    let adaptive = explained.limits[0].adaptive.as_ref().unwrap();
    assert_eq!(
        (adaptive.kind, adaptive.controller, adaptive.signal),
        ("concurrency", "auto", "latency")
    );
    assert_eq!((adaptive.limit, adaptive.min, adaptive.max), (2.0, 1.0, 2.0));
    assert_eq!((adaptive.reason, adaptive.signal_value), ("started", None));
    let state = explained.limits[0].state.as_ref().unwrap();
    assert_eq!((state.limit, state.remaining, state.in_flight), (2, 1, Some(1)));
    let second = get(ALICE, "/").through(&gate);
    let explained = get(ALICE, "/").explained(&gate);
    assert_eq!(explained.answer, Answer::Shed);
    let shown = explained.to_string();
    let level = explained.priority.unwrap().level;
    for line in [
        "answer   shed: the service can take no more at present\n".to_owned(),
        format!("priority low, level {level}, named by the default\n"),
        "limit    service: sheds\n".to_owned(),
        "           counted under global, cost 1\n".to_owned(),
        "           2 of 2 in flight, would pass in 1s\n".to_owned(),
        "           concurrency at 2, between 1 and 2: started, controller auto, signal latency not \
         known\n"
            .to_owned(),
    ] {
        assert!(shown.contains(&line), "{line} in\n{shown}");
    }
    drop((first, second));
}

#[test]
fn explaining_counts_nothing() {
    let (gate, _) = gate(&service("min = 1, max = 1"));
    let open = get(ALICE, "/").through(&gate);
    assert_eq!(get(ALICE, "/").explained(&gate).answer, Answer::Shed);
    assert_eq!(super::status(&gate, "service").refused, 0);
    drop(open);
}

#[test]
fn a_rate_per_caller_denies_in_an_explanation_too() {
    let rate = "[[limit]]\nname = 'service'\n\
                adaptive = { signal = 'cpu', target = 0.8, min = '1/h', max = '1/h' }\n";
    let (gate, _) = gate(rate);
    assert!(get(ALICE, "/").through(&gate).is_allowed());
    let explained = get(ALICE, "/").explained(&gate);
    assert_eq!(explained.answer, Answer::Denied);
    assert!(explained.to_string().contains("limit    service: denies\n"));
}

#[test]
fn a_limit_that_is_not_met_is_shown_nevertheless() {
    let (gate, _) = gate(&(service("min = 1, max = 9") + "match = { path = '/a' }\n"));
    let explained = get(ALICE, "/b").explained(&gate);
    assert_eq!(explained.limits[0].not_met.as_deref(), Some("another path"));
    assert!(explained.to_string().contains("concurrency at 9, between 1 and 9"), "{explained}");
}

#[test]
fn summaries_say_what_each_limit_is() {
    let policy = service("min = 1, max = 9")
        + "[[limit]]\nname = 'rate'\ncapacity = 7\n\
           adaptive = { signal = 'cpu', target = 0.8, min = '1/s', max = '9/s' }\n\
           [[limit]]\nname = 'share'\nadaptive = { controller = 'errors' }\n\
           [[limit]]\nname = 'fixed'\nquota = '5/s'\n";
    let (gate, _) = gate(&policy);
    let open = get(ALICE, "/").through(&gate);
    let limits = gate.limits();
    let shown: Vec<_> =
        limits.iter().map(|it| (it.quota.as_str(), it.algorithm, it.per.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("1 to 9 concurrent", "concurrency", "global"),
            ("1/s to 9/s", "token-bucket", "caller"),
            ("a share of 0.2 to 1", "share", "global"),
            ("5/s", "token-bucket", "caller"),
        ]
    );
    assert_eq!((limits[0].held, limits[0].expired), (Some(1), Some(0)));
    assert_eq!((limits[1].callers, limits[1].capacity, limits[1].held), (None, 7, None));
    let kinds: Vec<_> = limits.iter().map(|it| it.adaptive.as_ref().map(|it| it.kind)).collect();
    assert_eq!(kinds, [Some("concurrency"), Some("rate"), Some("share"), None]);
    let json = serde_json::to_value(&limits[0]).unwrap();
    assert_eq!(json["adaptive"]["limit"], 9.0);
    assert_eq!(json["adaptive"]["reason"], "started");
    assert!(serde_json::to_value(&limits[3]).unwrap().get("adaptive").is_none());
    drop(open);
}
