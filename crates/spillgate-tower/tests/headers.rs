//! The headers of responses, read by an independent parser.

use std::time::Duration;

use http::Response;
use proptest::prelude::*;
use sfv::{BareItem, List, ListEntry, Parser};
use spillgate::{AlgorithmKind, Decision, ManualClock};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Limit, LimitCheck, Policy};
use spillgate_testing::strategy;
use spillgate_tower::{Headers, SpillgateLayer};

use crate::common::{Answer, Body, PEER, gate, get, one_limit, send, send_to};

const FAMILIES: [&str; 5] = [
    "ratelimit-policy",
    "ratelimit",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// Intervals of whole nanoseconds make these windows a few nanoseconds longer.
#[tokio::test]
async fn windows_and_resets_are_as_long_as_the_quota_says() {
    for (quota, amount, window) in [("3/s", 3, 1), ("7/min", 7, 60), ("13/h burst 26", 26, 7200)] {
        let (gate, clock) = one_limit(quota);
        let layer = SpillgateLayer::new(gate);
        for _ in 1..amount {
            send(&layer, get(PEER, "/")).await;
        }
        let told = send(&layer, get(PEER, "/")).await;
        let policy = format!("\"public\";q={amount};w={window}");
        assert_eq!(told.header("ratelimit-policy").unwrap(), policy);
        assert_eq!(told.header("ratelimit").unwrap(), format!("\"public\";r=0;t={window}"));
        assert_eq!(told.header("x-ratelimit-reset").unwrap(), window.to_string(), "{quota}");
        // Nobody is told to wait for longer than the next token takes.
        let denied = send(&layer, get(PEER, "/")).await;
        let retry: u64 = denied.header("retry-after").unwrap().parse().unwrap();
        assert_eq!(retry, (window as u64).div_ceil(amount as u64), "{quota}");
        clock.advance(Duration::from_secs(retry));
        assert_eq!(send(&layer, get(PEER, "/")).await.status, 200, "{quota}");
    }
}

#[tokio::test]
async fn every_response_tells_of_the_limit() {
    let (gate, clock) = one_limit("10/s burst 20");
    let layer = SpillgateLayer::new(gate);
    let told = async |layer| {
        let answer: Answer = send(layer, get(PEER, "/")).await;
        FAMILIES.map(|name| answer.header(name).unwrap())
    };
    assert_eq!(told(&layer).await, ["\"public\";q=20;w=2", "\"public\";r=19;t=1", "20", "19", "1"]);
    for _ in 0..18 {
        told(&layer).await;
    }
    assert_eq!(told(&layer).await, ["\"public\";q=20;w=2", "\"public\";r=0;t=2", "20", "0", "2"]);
    assert_eq!(told(&layer).await, ["\"public\";q=20;w=2", "\"public\";r=0;t=2", "20", "0", "2"]);
    clock.advance(Duration::from_secs(1));
    assert_eq!(told(&layer).await, ["\"public\";q=20;w=2", "\"public\";r=9;t=2", "20", "9", "2"]);
}

#[tokio::test]
async fn each_family_can_be_switched_off() {
    let (gate, _) = one_limit("10/s");
    let layer = SpillgateLayer::new(gate);
    for (headers, told) in [
        (Headers::default(), [true, true]),
        (Headers::default().rate_limit(false), [false, true]),
        (Headers::default().x_rate_limit(false), [true, false]),
        (Headers::none(), [false, false]),
    ] {
        let answer = send(&layer.clone().headers(headers), get(PEER, "/")).await;
        let present = FAMILIES.map(|name| answer.header(name).is_some());
        assert_eq!(present, [told[0], told[0], told[1], told[1], told[1]]);
    }
}

#[tokio::test]
async fn a_request_that_meets_no_enforced_limit_is_told_nothing() {
    let policy = r#"
        allow = ["192.0.2.1"]
        limit = [
            { name = "public", quota = "1/s", match = { path = "/public" } },
            { name = "watched", quota = "1/s", mode = "shadow" },
        ]
    "#;
    let layer = SpillgateLayer::new(gate(policy).0);
    for (peer, path) in [(PEER, "/other"), ("192.0.2.1", "/public")] {
        let answer = send(&layer, get(peer, path)).await;
        assert!(FAMILIES.iter().all(|name| answer.header(name).is_none()), "{answer:?}");
    }
}

#[tokio::test]
async fn the_nearest_of_several_limits_speaks() {
    let policy = r#"
        limit = [{ name = "day", quota = "1000/day" }, { name = "second", quota = "5/s" }]
    "#;
    let layer = SpillgateLayer::new(gate(policy).0);
    let answer = send(&layer, get(PEER, "/")).await;
    assert_eq!(answer.header("ratelimit").unwrap(), "\"second\";r=4;t=1");
}

#[tokio::test]
async fn a_limit_that_is_never_refilled_tells_no_times() {
    let (gate, _) = one_limit("burst 5");
    let answer = send(&SpillgateLayer::new(gate), get(PEER, "/")).await;
    let told = FAMILIES.map(|name| answer.header(name));
    let told = told.each_ref().map(Option::as_deref);
    assert_eq!(told, [Some("\"public\";q=5"), Some("\"public\";r=4"), Some("5"), Some("4"), None]);
}

#[tokio::test]
async fn what_the_service_tells_of_its_own_limits_is_kept() {
    for (remaining, told) in
        [("3", ["5", "3", "9"]), ("4", ["5", "4", "9"]), ("5", ["5", "4", "1"])]
    {
        let (gate, _) = one_limit("5/s");
        let answer = send_to(&SpillgateLayer::new(gate), get(PEER, "/"), move |_| {
            Response::builder()
                .header("ratelimit-policy", "\"inner\";q=5;w=9")
                .header("ratelimit", "\"inner\";r=3;t=9")
                .header("x-ratelimit-limit", "5")
                .header("x-ratelimit-remaining", remaining)
                .header("x-ratelimit-reset", "9")
                .body(Body::default())
                .unwrap()
        })
        .await;
        assert_eq!(answer.header("ratelimit").unwrap(), "\"inner\";r=3;t=9, \"public\";r=4;t=1");
        let policies = answer.header("ratelimit-policy").unwrap();
        assert_eq!(policies, "\"inner\";q=5;w=9, \"public\";q=5;w=1");
        let old = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
        assert_eq!(old.map(|name| answer.header(name).unwrap()), told);
    }
}

#[tokio::test]
async fn an_odd_value_of_the_service_is_replaced_whole() {
    let (gate, _) = one_limit("burst 5");
    let answer = send_to(&SpillgateLayer::new(gate), get(PEER, "/"), |_| {
        Response::builder()
            .header("x-ratelimit-remaining", "many")
            .header("x-ratelimit-remaining", "more")
            .header("x-ratelimit-reset", "soon")
            .body(Body::default())
            .unwrap()
    })
    .await;
    assert_eq!(answer.header("x-ratelimit-remaining").unwrap(), "4");
    assert_eq!(answer.header("x-ratelimit-reset"), None);
}

/// The name and the parameters of a list's only member.
fn parsed(answer: &Answer, header: &str, keys: [&str; 2]) -> (String, [Option<u64>; 2]) {
    let list: List = Parser::new(&answer.header(header).unwrap()).parse().unwrap();
    let [ListEntry::Item(item)] = &list[..] else { panic!("{list:?}") };
    let BareItem::String(name) = &item.bare_item else { panic!("{item:?}") };
    let expected = keys.iter().filter(|key| item.params.get(**key).is_some()).count();
    assert_eq!(item.params.len(), expected, "no other parameters");
    let number = |key| match item.params.get(key) {
        Some(BareItem::Integer(number)) => Some(u64::try_from(i64::from(*number)).unwrap()),
        Some(other) => panic!("{other:?}"),
        None => None,
    };
    (name.as_str().to_owned(), keys.map(number))
}

fn assert_told(answer: &Answer, name: &str, decision: &Decision) {
    let clamped = |number: u64| number.min(999_999_999_999_999);
    let seconds = |time: Duration| clamped(time.as_nanos().div_ceil(1_000_000_000) as u64);
    let limit = clamped(decision.limit());
    let remaining = clamped(decision.remaining());
    let reset = decision.reset_after().map(seconds);
    let policy = [Some(limit), decision.window().map(seconds)];
    assert_eq!(parsed(answer, "ratelimit-policy", ["q", "w"]), (name.to_owned(), policy));
    let state = [Some(remaining), reset];
    assert_eq!(parsed(answer, "ratelimit", ["r", "t"]), (name.to_owned(), state));
    assert_eq!(answer.header("x-ratelimit-limit").unwrap(), limit.to_string());
    assert_eq!(answer.header("x-ratelimit-remaining").unwrap(), remaining.to_string());
    let reset = reset.map(|reset| reset.to_string());
    assert_eq!(answer.header("x-ratelimit-reset"), reset);
    let retry_after = decision.retry_after().filter(|_| decision.is_denied());
    let retry_after = retry_after.map(|time| seconds(time).max(1).to_string());
    assert_eq!(answer.header("retry-after"), retry_after);
}

prop_compose! {
    /// An algorithm and a quota that it can count, from tiny to the largest that there are.
    fn any_limit()(
        // A shaper would have requests wait.
        kind in prop::sample::select(&[
            AlgorithmKind::TokenBucket,
            AlgorithmKind::LeakyBucket,
            AlgorithmKind::IntervalBucket,
            AlgorithmKind::FixedWindow,
            AlgorithmKind::FirstHitWindow,
            AlgorithmKind::SlidingWindow,
        ][..]),
        amount in prop_oneof![1_u64..100, 1_u64..1_000_000],
        (unit, nanos) in prop::sample::select(&[
            ("ms", 1_000_000_u64),
            ("s", 1_000_000_000),
            ("h", 3_600_000_000_000),
            ("week", 604_800_000_000_000),
        ][..]),
        burst in prop_oneof![1_u64..100, any::<u64>()],
        refills in prop::bool::weighted(0.9),
    ) -> (AlgorithmKind, String) {
        // No more than a bucket keeps exactly enough, nor longer than a refill may take.
        let amount = amount.min(nanos / 1_000);
        let burst = 1 + burst % ((1 << 61) / nanos.div_ceil(amount));
        let quota = match kind {
            AlgorithmKind::TokenBucket if !refills => format!("burst {burst}"),
            AlgorithmKind::TokenBucket | AlgorithmKind::LeakyBucket => {
                format!("{amount}/{unit} burst {burst}")
            }
            // What the word of a window can count in a millisecond.
            _ => format!("{}/{unit}", 1 + amount % 500),
        };
        (kind, quota)
    }
}

proptest! {
    #![proptest_config(strategy::cases(2_000))]

    #[test]
    fn headers_parse_and_tell_what_was_decided(
        (kind, quota) in any_limit(),
        name in "[A-Za-z0-9_.-]{1,64}",
        calls in prop::collection::vec((0..10_000_000_000_u64, 0..200_u64), 1..10),
    ) {
        let clock = ManualClock::default();
        let gate = || {
            let cost = |request: &spillgate_policy::RequestView<'_>| request.path()[1..].parse().unwrap();
            let limit = Limit::new(&*name, &*quota).algorithm(kind).capacity(1).cost_of(cost);
            let policy = Policy::builder().limit(limit).build().unwrap();
            Gate::with_store(policy, Memory::new(clock.clone())).unwrap()
        };
        let (layer, twin) = (SpillgateLayer::new(gate()), gate());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (elapsed, cost) in calls {
            clock.advance(Duration::from_nanos(elapsed));
            let answer = runtime.block_on(send(&layer, get(PEER, &format!("/{cost}"))));
            let check = LimitCheck::new(&name, &[PEER], cost);
            let outcome = runtime.block_on(twin.decide(&check)).unwrap();
            assert_told(&answer, &name, outcome.decision().unwrap());
        }
    }
}
