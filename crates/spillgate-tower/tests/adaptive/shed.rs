//! What a client sees when the service is at its limit.

use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use spillgate_tower::GrpcStatus;

use super::{ONE, SPARED, for_seconds, layer, open, verdict};
use crate::common::{Answer, PEER, get, send, send_to};

const TYPE: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

fn call() -> Request<()> {
    let mut call = get(PEER, "/package.Service/Method");
    *call.method_mut() = Method::POST;
    call.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    call
}

#[tokio::test]
async fn a_shed_request_is_told_when_to_try_again() {
    let (layer, gate, _) = layer(ONE);
    let first = open(&layer, get(PEER, "/")).await;
    assert_eq!(first.status(), 200);
    assert_eq!(first.headers()["ratelimit-policy"], "\"service\";q=1;qu=\"concurrent-requests\"");
    assert_eq!(first.headers()["ratelimit"], "\"service\";r=0");
    assert!(!first.headers().contains_key("x-ratelimit-reset"));

    let shed = send(&layer, get(PEER, "/")).await;
    assert_eq!(shed.status, 503);
    assert_eq!(shed.header("retry-after").unwrap(), "1");
    assert_eq!(shed.header("content-type").unwrap(), "application/problem+json");
    let document: Value = serde_json::from_str(&shed.body).unwrap();
    assert_eq!(document["type"], TYPE);
    assert_eq!(document["status"], 503);
    assert_eq!(document["detail"], "The service can take no more requests now. Try again in 1 s.");
    assert_eq!(document["violated-policies"], json!(["service"]));
    assert_eq!(verdict(&gate).await, spillgate_policy::Answer::Shed);

    drop(first);
    assert_eq!(send(&layer, get(PEER, "/")).await.status, 200);
}

#[tokio::test]
async fn a_shed_call_is_unavailable_with_a_pushback() {
    let (layer, _, _) = layer(ONE);
    let _first = open(&layer, get(PEER, "/")).await;
    let by_content_type = send(&layer, call()).await;
    let by_responder = send(&layer.clone().respond_with(GrpcStatus), get(PEER, "/")).await;
    for Answer { status, headers, .. } in [by_content_type, by_responder] {
        assert_eq!(status, 200, "gRPC");
        assert_eq!(headers["grpc-status"], "14");
        assert_eq!(headers["grpc-retry-pushback-ms"], "1000");
        assert_eq!(
            headers["grpc-message"],
            "The service can take no more requests now. Try again in 1 s."
        );
    }
}

#[tokio::test]
async fn a_shed_request_spends_nothing_and_a_denied_one_takes_no_permit() {
    let policy = format!("[[limit]]\nname = \"api\"\nper = \"ip\"\nquota = \"2/h\"\n{ONE}");
    let (layer, gate, _) = layer(&policy);
    let first = open(&layer, get(PEER, "/")).await;
    for _ in 0..5 {
        assert_eq!(send(&layer, get(PEER, "/")).await.status, 503);
    }
    drop(first);
    assert_eq!(send(&layer, get(PEER, "/")).await.status, 200, "nothing was spent");
    assert_eq!(send(&layer, get(PEER, "/")).await.status, 429);
    assert_eq!(super::state(&gate).status.in_flight, 0);
    assert_eq!(send(&layer, get("192.0.2.9", "/")).await.status, 200);
}

#[tokio::test]
async fn a_rate_per_caller_denies_and_one_for_all_sheds() {
    for (per, status) in [("global", 503), ("ip", 429)] {
        let (layer, _, _) = layer(&format!(
            "[[limit]]\nname = \"service\"\nper = \"{per}\"\n\
             adaptive = {{ controller = \"aimd\", min = \"1/h\", max = \"2/h\" }}\n"
        ));
        let mut statuses = Vec::new();
        for _ in 0..4 {
            let answer = send(&layer, get(PEER, "/")).await;
            assert_eq!(answer.header("retry-after").is_some(), answer.status != 200);
            statuses.push(answer.status.as_u16());
        }
        assert_eq!(*statuses.last().unwrap(), status, "per {per}: {statuses:?}");
        assert_eq!(statuses[0], 200, "per {per}: {statuses:?}");
    }
}

#[tokio::test]
async fn a_limit_in_shadow_mode_sheds_nobody() {
    let (layer, _, _) = layer(&format!("{ONE}mode = \"shadow\"\n"));
    let _first = open(&layer, get(PEER, "/")).await;
    let second = send(&layer, get(PEER, "/")).await;
    assert_eq!((second.status.as_u16(), second.header("ratelimit")), (200, None));
}

#[tokio::test]
async fn a_share_of_all_requests_has_no_numbers_for_a_client() {
    let (layer, gate, clock) = layer(SPARED);
    let mut statuses = Vec::new();
    for_seconds(20, &clock, async || {
        let answer = send_to(&layer, get(PEER, "/"), |_| {
            let mut response = Response::new("".into());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        });
        let answer = answer.await;
        for name in ["ratelimit", "ratelimit-policy", "x-ratelimit-limit"] {
            assert_eq!(answer.header(name), None, "{answer:?}");
        }
        assert_eq!(answer.header("retry-after").is_some(), answer.status == 503, "{answer:?}");
        statuses.push(answer.status.as_u16());
    })
    .await;
    assert!(super::state(&gate).status.limit < 1.0);
    assert!(statuses.contains(&503) && statuses.contains(&502), "{statuses:?}");
}
