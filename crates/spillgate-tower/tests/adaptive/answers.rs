//! What stands between the layer and the service knows better how long that took, or that it was
//! not asked.

use std::time::Duration;

use http::{Response, StatusCode};
use spillgate_tower::ServiceLatency;

use super::{SPARED, for_seconds, layer, state};
use crate::common::{PEER, get, send_to};

#[tokio::test]
async fn an_answer_that_is_not_of_the_service_says_nothing() {
    for (is_marked, expected) in [(true, None), (false, Some(1.0))] {
        let (layer, gate, clock) = layer(SPARED);
        for_seconds(5, &clock, async || {
            let answer = move |_| {
                let mut response = Response::new("busy".into());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                if is_marked {
                    response.extensions_mut().insert(ServiceLatency(None));
                }
                response
            };
            send_to(&layer, get(PEER, "/"), answer).await;
        })
        .await;
        let status = state(&gate).status;
        assert_eq!(status.signal, expected, "{status:?}");
        assert_eq!(status.limit == 1.0, is_marked, "{status:?}");
    }
}

#[tokio::test]
async fn the_latency_of_the_service_is_what_a_response_says() {
    let target = "[[limit]]\nname = \"service\"\n\
                  adaptive = { controller = \"target\", target = \"1s\", min = 1, max = 50 }\n";
    let (layer, gate, clock) = layer(target);
    let told = Duration::from_millis(40);
    for_seconds(5, &clock, async || {
        let passing = clock.clone();
        let answer = move |_| {
            passing.advance(Duration::from_millis(500));
            let mut response = Response::new("hello".into());
            response.extensions_mut().insert(ServiceLatency(Some(told)));
            response
        };
        send_to(&layer, get(PEER, "/"), answer).await;
    })
    .await;
    let latency = state(&gate).status.signal.unwrap();
    assert!((latency - told.as_secs_f64()).abs() < 0.01, "{latency} s");
}
