//! What responses and metrics say of permits.

use sfv::{BareItem, List, ListEntry, Parser};
use spillgate_policy::{Gate, Policy};
use spillgate_tower::{Metrics, SpillgateLayer};

use super::uploads;
use crate::common::{Answer, PEER, get, send, send_to, service};
use http::Response;
use tower::{Layer, ServiceExt};

/// The name of the only item of a header, and its parameters.
fn item(answer: &Answer, name: &str) -> (String, Vec<(String, String)>) {
    let text = answer.header(name).unwrap();
    let list: List = Parser::new(&text).parse().unwrap();
    let [ListEntry::Item(item)] = &list[..] else { panic!("{text}") };
    let BareItem::String(name) = &item.bare_item else { panic!("{text}") };
    let shown = |value: &BareItem| match value {
        BareItem::Integer(number) => number.to_string(),
        BareItem::String(text) => text.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    let parameters = item.params.iter().map(|(key, value)| (key.as_str().to_owned(), shown(value)));
    (name.as_str().to_owned(), parameters.collect())
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn permits_have_their_unit_and_no_times() {
    let layer = SpillgateLayer::new(uploads(2)).log(false);
    let allowed = send(&layer, get(PEER, "/")).await;
    assert_eq!(
        item(&allowed, "ratelimit-policy"),
        ("uploads".to_owned(), pairs(&[("q", "2"), ("qu", "concurrent-requests")]))
    );
    assert_eq!(item(&allowed, "ratelimit"), ("uploads".to_owned(), pairs(&[("r", "1")])));
    assert_eq!(allowed.header("x-ratelimit-limit").unwrap(), "2");
    assert_eq!(allowed.header("x-ratelimit-remaining").unwrap(), "1");
    assert_eq!(allowed.header("x-ratelimit-reset"), None);
    assert_eq!(allowed.header("retry-after"), None);

    let hello = service(|_| Response::new("hello".into()));
    let service = layer.layer(hello);
    let open = (
        service.clone().oneshot(get(PEER, "/")).await.unwrap(),
        service.clone().oneshot(get(PEER, "/")).await.unwrap(),
    );
    let denied = send(&layer, get(PEER, "/")).await;
    assert_eq!(denied.status, 429);
    assert_eq!(item(&denied, "ratelimit"), ("uploads".to_owned(), pairs(&[("r", "0")])));
    assert_eq!(denied.header("retry-after").unwrap(), "1");
    assert_eq!(denied.header("x-ratelimit-reset"), None);
    drop(open);
}

#[tokio::test]
async fn a_rate_that_becomes_a_concurrency_limit_of_the_same_number_gets_its_unit() {
    let policy = |line: &str| Policy::from_toml(&format!("[[limit]]\nname = \"l\"\n{line}"));
    let gate = Gate::new(policy("quota = \"burst 5\"").unwrap()).unwrap();
    let layer = SpillgateLayer::new(gate);
    let before = send(&layer, get(PEER, "/")).await;
    assert_eq!(before.header("ratelimit-policy").unwrap(), "\"l\";q=5");
    layer.gate().replace(policy("concurrent = 5").unwrap()).unwrap();
    let after = send(&layer, get(PEER, "/")).await;
    let expected = "\"l\";q=5;qu=\"concurrent-requests\"";
    assert_eq!(after.header("ratelimit-policy").unwrap(), expected);
}

#[tokio::test]
async fn metrics_count_permits_and_denials() {
    let metrics = Metrics::new();
    let policy = "[[limit]]\nname = \"rate\"\nquota = \"10/s\"\n\
                  [[limit]]\nname = \"uploads\"\nconcurrent = 1";
    let layer = SpillgateLayer::new(crate::common::gate(policy).0).metrics(metrics.clone());
    let layer = layer.log(false);
    let has = |line: &str| {
        let text = metrics.encode();
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    };
    has("spillgate_permits_held{limit=\"uploads\"} 0");
    has("spillgate_permits_expired_total{limit=\"uploads\"} 0");
    assert!(!metrics.encode().contains("spillgate_permits_held{limit=\"rate\"}"));
    let inner = layer.clone();
    let nested = send_to(&layer, get(PEER, "/"), {
        let metrics = metrics.clone();
        move |_| Response::new(metrics.encode().into())
    });
    assert!(nested.await.body.contains("spillgate_permits_held{limit=\"uploads\"} 1\n"));
    has("spillgate_permits_held{limit=\"uploads\"} 0");
    let open = inner.layer(service(|_| Response::new("hello".into()))).oneshot(get(PEER, "/"));
    let open = open.await.unwrap();
    assert_eq!(send(&layer, get(PEER, "/")).await.status, 429);
    has("spillgate_requests_total{limit=\"uploads\",outcome=\"denied\"} 1");
    has("spillgate_requests_total{limit=\"uploads\",outcome=\"allowed\"} 2");
    drop(open);
}

#[tokio::test]
async fn acquired_permits_are_counted_like_requests() {
    let metrics = Metrics::new();
    let policy = "[[limit]]\nname = \"jobs\"\nby-name = true\nper = \"user\"\nconcurrent = 1";
    let layer = SpillgateLayer::new(crate::common::gate(policy).0).metrics(metrics.clone());
    let layer = layer.log(false);
    let enforcer = layer.enforcer();
    let acquired = enforcer.acquire("jobs", &["42"], 1, None).await.unwrap();
    let denied = enforcer.acquire("jobs", &["42"], 1, None).await.unwrap();
    assert!(denied.id().is_none() && !denied.outcome().is_allowed());
    let text = metrics.encode();
    for line in [
        "spillgate_permits_held{limit=\"jobs\"} 1",
        "spillgate_requests_total{limit=\"jobs\",outcome=\"allowed\"} 1",
        "spillgate_requests_total{limit=\"jobs\",outcome=\"denied\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let id = acquired.id().unwrap();
    assert!(enforcer.renew(id, std::time::Duration::from_secs(5)).await.unwrap());
    assert!(enforcer.release(id).await.unwrap());
    assert!(!enforcer.release(id).await.unwrap());
}
