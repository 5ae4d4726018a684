//! Who is shed first.

use std::collections::VecDeque;
use std::time::Duration;

use http::Request;

use super::{Layered, layer, open};
use crate::common::{PEER, get};

const POLICY: &str = r#"
[identity]
trusted-proxies = ["10.0.0.1"]
api-key = { header = "x-api-key", accept = ["gold-key", "other-key"] }

[priority]
header = "x-priority"
tier = { gold = "high" }

[[priority.rule]]
class = "low"
match = { path = "/reports/{*rest}" }

[[limit]]
name = "service"
adaptive = { min = 10, max = 10 }

[[limit]]
name = "api"
quota = "1000000/s"

[tier.gold]
callers = ["api-key:gold-key"]
api = "2000000/s"
"#;

/// Makes a request.
type Make = fn() -> Request<()>;

/// Three times what the service can do: each tick of 50 ms a request ends and three come, every fifth of
/// the first kind. Returns the share of each kind that went ahead after the first seconds.
async fn admitted(layer: &Layered, clock: &spillgate::ManualClock, kinds: [Make; 2]) -> [f64; 2] {
    const WARM_UP: u32 = 3 * 200;
    let (mut came, mut admitted, mut in_flight) = ([0_u32; 2], [0_u32; 2], VecDeque::new());
    for number in 0..3 * 1000 {
        let kind = usize::from(number % 5 != 0);
        let response = open(layer, kinds[kind]()).await;
        let is_admitted = response.status() == 200;
        assert!(is_admitted || response.status() == 503, "{}", response.status());
        if number >= WARM_UP {
            came[kind] += 1;
            admitted[kind] += u32::from(is_admitted);
        }
        in_flight.extend(is_admitted.then_some(response));
        if number % 3 == 2 {
            in_flight.pop_front();
            clock.advance(Duration::from_millis(50));
        }
    }
    [0, 1].map(|kind| f64::from(admitted[kind]) / f64::from(came[kind]))
}

fn normal() -> Request<()> {
    get(PEER, "/things")
}

fn with_header(peer: &str, name: &'static str, value: &'static str) -> Request<()> {
    let mut request = get(peer, "/things");
    request.headers_mut().insert(name, http::HeaderValue::from_static(value));
    request
}

#[tokio::test]
async fn without_priorities_nobody_is_preferred() {
    let (layer, _, clock) =
        layer("[[limit]]\nname = \"service\"\nadaptive = { min = 10, max = 10 }\n");
    let shares = admitted(&layer, &clock, [normal, || get(PEER, "/reports/1")]).await;
    assert!(shares.iter().all(|share| (0.2..0.5).contains(share)), "{shares:?}");
}

#[tokio::test]
async fn the_lower_class_is_shed_first_by_path_tier_and_header() {
    let cases: [(&str, [Make; 2]); 3] = [
        ("path", [normal, || get(PEER, "/reports/1")]),
        ("tier", [|| with_header(PEER, "x-api-key", "gold-key"), normal]),
        ("header of a proxy", [|| with_header("10.0.0.1", "x-priority", "high"), normal]),
    ];
    for (by, kinds) in cases {
        let (layer, _, clock) = layer(POLICY);
        let [higher, lower] = admitted(&layer, &clock, kinds).await;
        assert!(higher > 0.9 && lower < 0.3, "{by}: {higher} {lower}");
    }
}

#[tokio::test]
async fn a_header_of_just_anyone_changes_nothing() {
    let (layer, _, clock) = layer(POLICY);
    let claims: Make = || with_header(PEER, "x-priority", "critical");
    let metrics = spillgate_tower::Metrics::new();
    let layer = layer.metrics(metrics.clone());
    let [claimed, _] = admitted(&layer, &clock, [claims, normal]).await;
    assert!(claimed < 0.9, "{claimed}");
    let text = metrics.encode();
    let critical = "spillgate_shed_total{limit=\"service\",class=\"critical\"} 0";
    assert!(text.lines().any(|line| line == critical), "{text}");
}
