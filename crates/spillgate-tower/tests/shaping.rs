//! Requests that wait their turn. Time is tokio's, paused.

use std::time::Duration;

use http::{Response, StatusCode};
use spillgate::{Clock, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};
use spillgate_tower::SpillgateLayer;
use tokio::time::Instant;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, ServiceExt};

use crate::common::{Answer, Body, PEER, get, send, send_to, service};

/// The runtime's clock, which jumps to the next timer while it is paused.
#[derive(Clone, Copy)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_700_000_000) + self.0.elapsed()
    }
}

/// Lets a request through every 100 ms, and four more wait.
fn paced() -> SpillgateLayer<Memory<TokioClock>> {
    let policy =
        "[[limit]]\nname = \"paced\"\nquota = \"10/s burst 5\"\nalgorithm = \"leaky-shaper\"";
    let policy = Policy::from_toml(policy).unwrap();
    let store = Memory::new(TokioClock(Instant::now()));
    SpillgateLayer::new(Gate::with_store(policy, store).unwrap())
}

/// Sends a request, and tells when the service saw it.
async fn seen_after(
    layer: &SpillgateLayer<Memory<TokioClock>>,
    begin: Instant,
) -> (Answer, Duration) {
    let answer = send_to(layer, get(PEER, "/"), move |_| {
        let seen = begin.elapsed().as_millis().to_string();
        Response::new(Body::from(seen))
    })
    .await;
    let seen = Duration::from_millis(answer.body.parse().unwrap_or_default());
    (answer, seen)
}

#[tokio::test(start_paused = true)]
async fn who_waits_takes_no_place_in_the_service() {
    let hello = service(|_| Response::new(Body::from("hello")));
    let paced = paced().layer(ConcurrencyLimit::new(hello, 1));
    let begin = Instant::now();
    let ask = |peer: &str| paced.clone().oneshot(get(peer, "/"));
    ask(PEER).await.unwrap();
    let waits = tokio::spawn(ask(PEER));
    tokio::task::yield_now().await;
    ask("198.51.100.1").await.unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO, "another caller does not wait for it");
    waits.await.unwrap().unwrap();
    assert_eq!(begin.elapsed().as_millis(), 100);
}

#[tokio::test(start_paused = true)]
async fn requests_reach_the_service_evenly_spaced_and_no_more_wait_than_have_room() {
    let (layer, begin) = (paced(), Instant::now());
    let sent = [(); 7].map(|()| {
        let layer = layer.clone();
        tokio::spawn(async move { seen_after(&layer, begin).await })
    });
    let mut seen = Vec::new();
    let mut refused = 0;
    for answer in sent {
        match answer.await.unwrap() {
            (answer, after) if answer.status == StatusCode::OK => seen.push(after.as_millis()),
            (answer, _) => {
                assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
                assert_eq!(answer.header("retry-after").unwrap(), "1");
                refused += 1;
            }
        }
    }
    assert_eq!(seen, [0, 100, 200, 300, 400]);
    assert_eq!(refused, 2, "they were told at once");
    assert_eq!(begin.elapsed(), Duration::from_millis(400), "the wait is bounded");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_is_told_of_its_limit() {
    let layer = paced();
    assert_eq!(
        send(&layer, get(PEER, "/")).await.header("ratelimit").unwrap(),
        "\"paced\";r=4;t=1"
    );
    let waited = send(&layer, get(PEER, "/")).await;
    assert_eq!(waited.header("ratelimit").unwrap(), "\"paced\";r=3;t=1");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_while_it_waits_gives_its_place_back() {
    let (layer, begin) = (paced(), Instant::now());
    assert_eq!(seen_after(&layer, begin).await.1, Duration::ZERO);
    for _ in 0..50 {
        let given_up = tokio::time::timeout(Duration::ZERO, send(&layer, get(PEER, "/"))).await;
        assert!(given_up.is_err(), "it was to wait");
    }
    let (_, after) = seen_after(&layer, begin).await;
    assert!(after <= Duration::from_millis(100), "{after:?}: nobody else is in line");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_waited_keeps_its_place() {
    let (layer, begin) = (paced(), Instant::now());
    for place in 0..5 {
        assert_eq!(seen_after(&layer, begin).await.1, Duration::from_millis(100 * place));
    }
}
