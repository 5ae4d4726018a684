//! What is logged of adaptive limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Response, StatusCode};
use spillgate::ManualClock;
use spillgate_policy::store::Memory;
use spillgate_policy::{Adaptive, Gate, Limit, Policy};
use spillgate_tower::SpillgateLayer;
use tower::{Layer, ServiceExt};
use tracing::Level;

use crate::common::{Body, PEER, gate, get, send, send_to, service};
use crate::{Event, captured};

fn answers(status: StatusCode) -> impl Fn(http::Request<()>) -> Response<Body> + Clone + Send {
    move |_| {
        let mut response = Response::new(Body::default());
        *response.status_mut() = status;
        response
    }
}

/// The levels and messages of events.
fn messages(events: &[Event]) -> Vec<(Level, &str)> {
    events.iter().map(|event| (event.level, event.field("message"))).collect()
}

#[tokio::test]
async fn a_shed_request_is_logged_with_its_limit_and_class() {
    let policy = "[priority]\ndefault = \"low\"\n\
                  [[limit]]\nname = \"service\"\nadaptive = { min = 1, max = 1 }\n";
    let layer = SpillgateLayer::new(gate(policy).0);
    let (events, _capturing) = captured();
    let open = layer.layer(service(|_| Response::new("hello".into()))).oneshot(get(PEER, "/"));
    let open = open.await.unwrap();
    assert!(events.lock().unwrap().is_empty());
    for _ in 0..30 {
        assert_eq!(send(&layer, get(PEER, "/thing?secret=1")).await.status, 503);
    }
    drop(open);
    let events = events.lock().unwrap();
    assert_eq!(events.len(), 20, "an overload must not fill the disk");
    let event = &events[0];
    assert_eq!((event.level, event.field("message")), (Level::WARN, "shed"));
    assert_eq!((event.field("limit"), event.field("class")), ("service", "low"));
    assert_eq!((event.field("method"), event.field("path")), ("GET", "/thing"));
    assert_eq!(event.field("retry_after_ms"), "1000");
}

#[tokio::test]
async fn a_limit_that_turns_is_logged_and_its_other_steps_are_for_those_who_debug() {
    let policy = "[[limit]]\nname = \"service\"\nadaptive = { controller = \"errors\" }\n";
    let (gate, clock) = gate(policy);
    let layer = SpillgateLayer::new(gate).log(false);
    let (events, _capturing) = captured();
    for (status, seconds) in
        [(StatusCode::OK, 20), (StatusCode::BAD_GATEWAY, 20), (StatusCode::OK, 60)]
    {
        for _ in 0..seconds * 10 {
            send_to(&layer, get(PEER, "/"), answers(status)).await;
            clock.advance(Duration::from_millis(100));
        }
    }
    let events = events.lock().unwrap();
    let lowered: Vec<_> =
        events.iter().filter(|event| event.field("message") == "adaptive limit lowered").collect();
    let raised: Vec<_> =
        events.iter().filter(|event| event.field("message") == "adaptive limit raised").collect();
    assert_eq!(lowered.len() + raised.len(), events.len(), "{events:?}");
    for (steps, reason) in [(&lowered, "failures"), (&raised, "recovered")] {
        assert!(steps.len() > 1, "{steps:?}");
        assert_eq!(steps[0].level, Level::INFO);
        assert!(steps[1..].iter().all(|event| event.level == Level::DEBUG), "{steps:?}");
        assert_eq!(steps[0].field("limit"), "service");
        assert_eq!(steps[0].field("reason"), reason);
        assert_eq!(steps[0].field("signal"), "errors");
    }
    let number = |name: &str| lowered[0].field(name).parse::<f64>().unwrap();
    assert_eq!(number("from"), 1.0);
    assert!(number("to") < 1.0);
}

#[tokio::test]
async fn a_signal_that_goes_missing_is_logged_once_and_once_when_it_is_back() {
    for nothing in [None, Some(f64::NAN)] {
        let is_there = Arc::new(AtomicBool::new(true));
        let signal = {
            let is_there = Arc::clone(&is_there);
            move || if is_there.load(Ordering::Relaxed) { Some(0.5) } else { nothing }
        };
        let limit = Limit::adaptive("service", Adaptive::load(0.5, 10..=10).signal(signal));
        let clock = ManualClock::default();
        let policy = Policy::builder().limit(limit).build().unwrap();
        let gate = Gate::with_store(policy, Memory::new(clock.clone())).unwrap();
        let layer = SpillgateLayer::new(gate);
        let (events, _capturing) = captured();
        for seconds in [5, 10, 10] {
            for _ in 0..seconds * 10 {
                assert_eq!(send(&layer, get(PEER, "/")).await.status, 200);
                clock.advance(Duration::from_millis(100));
            }
            is_there.fetch_xor(true, Ordering::Relaxed);
        }
        let events = events.lock().unwrap();
        let expected = [
            (Level::WARN, "the signal is missing: the adaptive limit stays where it is"),
            (Level::INFO, "the signal is back: the adaptive limit follows it again"),
        ];
        assert_eq!(messages(&events), expected, "{nothing:?}");
        assert_eq!((events[0].field("limit"), events[0].field("held")), ("service", "10.0"));
    }
}
