//! What is held back for the end of a window stops nobody who has plenty left.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Response;
use spillgate_client::ClientLayer;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::common::{Body, TokioClock, far, get};

/// How long it takes to send some requests one after the other to a far side with these headers: the
/// number of requests so far makes them.
async fn time_of(
    requests: u64,
    headers: impl Fn(u64) -> Vec<(&'static str, u64)> + Clone + Send + Sync + 'static,
) -> (Duration, ClientLayer) {
    let count = Arc::new(Mutex::new(0));
    let service = far(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        let mut response = Response::builder();
        for (name, value) in headers(*count) {
            response = response.header(name, value);
        }
        std::future::ready(response.body(Body::default()).unwrap())
    });
    let began = Instant::now();
    let layer = ClientLayer::builder().clock(TokioClock::start()).build().unwrap();
    let client = layer.layer(service);
    for number in 0..requests {
        let sent = client.clone().oneshot(get()).await;
        assert!(sent.is_ok(), "request {number}: {sent:?} {:?}", layer.status());
    }
    (began.elapsed(), layer)
}

#[tokio::test(start_paused = true)]
async fn a_small_share_that_is_plenty_is_used() {
    for (limit, remaining, reset, longest) in
        [(1_000_000_000, 1_000_000, 3_600, 2), (1_000_000, 100_000, 86_400, 10)]
    {
        let (took, _) = time_of(100, move |count| {
            vec![
                ("x-ratelimit-limit", limit),
                ("x-ratelimit-remaining", remaining - count),
                ("x-ratelimit-reset", reset),
            ]
        })
        .await;
        assert!(took < Duration::from_secs(longest), "{remaining} of {limit}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_exaggeration_is_not_a_limit_for_ever() {
    let (took, layer) = time_of(20, |count| match count {
        1 => vec![("x-ratelimit-remaining", 999_999_999_999_999), ("x-ratelimit-reset", 1)],
        2 => vec![("x-ratelimit-remaining", 0), ("x-ratelimit-reset", 1)],
        _ => vec![("x-ratelimit-remaining", 100 - count), ("x-ratelimit-reset", 50)],
    })
    .await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(layer.status()[0].limits[0].1.limit, 97);
}

#[tokio::test(start_paused = true)]
async fn one_exaggeration_is_not_the_cost_of_a_request() {
    let (took, _) = time_of(20, |count| {
        let (remaining, reset) = match count {
            1 => (999_999_999_999_999, 1),
            2 => (0, 1),
            _ => (10_000 - 100 * count, 50),
        };
        vec![("x-ratelimit-remaining-tokens", remaining), ("x-ratelimit-reset-tokens", reset)]
    })
    .await;
    assert!(took < Duration::from_secs(60), "{took:?}");
}
