//! What refused clients are told.

use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::{Value, json};
use spillgate_tower::{Headers, Metrics, Reason, Refusal, SpillgateLayer};

use crate::common::{Answer, Body, PEER, gate, get, one_limit, send};

fn problem(answer: &Answer) -> Value {
    assert_eq!(answer.header("content-type").unwrap(), "application/problem+json");
    serde_json::from_str(&answer.body).unwrap()
}

#[tokio::test]
async fn a_denied_request_gets_a_429_with_a_problem_document() {
    let (gate, _) = one_limit("1/min burst 2");
    let layer = SpillgateLayer::new(gate);
    assert_eq!(send(&layer, get(PEER, "/")).await.body, "hello");
    assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::OK);
    let denied = send(&layer, get(PEER, "/")).await;
    assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(denied.header("retry-after").unwrap(), "60");
    assert_eq!(
        problem(&denied),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": "The limit public is exceeded. Try again in 60 s.",
            "violated-policies": ["public"],
        })
    );
    let other = send(&layer, get("203.0.113.8", "/")).await;
    assert_eq!(other.status, StatusCode::OK, "another caller is not concerned");
}

#[tokio::test]
async fn a_request_without_a_clear_host_gets_a_400_where_limits_are_for_hosts() {
    let (gate, _) = gate(
        "[[limit]]\nname = \"public\"\nmatch = { host = \"api.example.com\" }\nquota = \"1/h burst 2\"",
    );
    let metrics = Metrics::new();
    let layer = SpillgateLayer::new(gate).metrics(metrics.clone());
    for _ in 0..3 {
        let refused = send(&layer, get(PEER, "/")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.header("retry-after"), None);
        let document = problem(&refused);
        assert_eq!(document["status"], 400);
        assert!(document["detail"].as_str().unwrap().contains("Host"), "{document}");
    }
    let to = |host: &str| {
        let mut request = get(PEER, "/");
        request.headers_mut().insert("host", host.parse().unwrap());
        request
    };
    for status in [StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS] {
        assert_eq!(send(&layer, to("api.example.com")).await.status, status);
    }
    assert_eq!(send(&layer, to("a b")).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(send(&layer, to("other.example.com")).await.status, StatusCode::OK);
    assert!(metrics.encode().contains("spillgate_without_host_total 4\n"));
}

#[tokio::test]
async fn retry_after_is_rounded_up_and_at_least_one() {
    for (quota, elapsed, seconds, millis) in [
        ("1/s", 0, "1", "1000"),
        ("1/s", 999_999_999, "1", "1"),
        ("1/s", 1, "1", "1000"),
        ("1 per 2 s", 999_999_999, "2", "1001"),
        ("1 per 2 s", 1_000_000_000, "1", "1000"),
        ("1000/s burst 1", 999_999, "1", "1"),
        ("1/day", 1_000_000_000, "86399", "86399000"),
    ] {
        let (gate, clock) = one_limit(quota);
        let layer = SpillgateLayer::new(gate).headers(Headers::none().retry_after_ms(true));
        let first = send(&layer, get(PEER, "/")).await;
        assert_eq!(first.header("retry-after-ms"), None);
        clock.advance(Duration::from_nanos(elapsed));
        let denied = send(&layer, get(PEER, "/")).await;
        assert_eq!(denied.header("retry-after").unwrap(), seconds, "{quota} after {elapsed}");
        assert_eq!(denied.header("retry-after-ms").unwrap(), millis, "{quota} after {elapsed}");
    }
}

#[tokio::test]
async fn if_no_waiting_helps_there_is_no_retry_after_and_the_detail_says_so() {
    let limit = "[[limit]]\nname = \"bulk\"\nquota = \"10/s\"\ncost = 11";
    let used_up = "[[limit]]\nname = \"bulk\"\nquota = \"burst 1\"";
    for (policy, before) in [(limit, 0), (used_up, 1)] {
        let layer =
            SpillgateLayer::new(gate(policy).0).headers(Headers::default().retry_after_ms(true));
        for _ in 0..before {
            assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::OK);
        }
        let denied = send(&layer, get(PEER, "/")).await;
        assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(denied.header("retry-after"), None);
        assert_eq!(denied.header("retry-after-ms"), None);
        assert_eq!(
            problem(&denied)["detail"],
            "The limit bulk never lets this request pass. Waiting does not help."
        );
    }
}

#[tokio::test]
async fn all_enforced_limits_that_deny_are_named() {
    let policy = r#"
        limit = [
            { name = "second", quota = "1/s", per = "ip" },
            { name = "hour.all_1-a", quota = "1/h" },
            { name = "roomy", quota = "100/s", per = "global" },
            { name = "shadow", quota = "1/day", mode = "shadow" },
        ]
    "#;
    let layer = SpillgateLayer::new(gate(policy).0);
    assert_eq!(send(&layer, get(PEER, "/")).await.status, StatusCode::OK);
    let denied = send(&layer, get(PEER, "/")).await;
    assert_eq!(denied.header("retry-after").unwrap(), "3600", "the longest wait");
    let problem = problem(&denied);
    let mut names: Vec<_> = problem["violated-policies"].as_array().unwrap().iter().collect();
    names.sort_by_key(|name| name.as_str());
    assert_eq!(names, ["hour.all_1-a", "second"]);
}

#[tokio::test]
async fn a_blocked_caller_gets_a_403_without_a_time() {
    let policy = "block = [\"203.0.113.7\"]\n[[limit]]\nname = \"public\"\nquota = \"1/s\"";
    let layer = SpillgateLayer::new(gate(policy).0);
    let blocked = send(&layer, get(PEER, "/")).await;
    assert_eq!(blocked.status, StatusCode::FORBIDDEN);
    assert_eq!(blocked.header("retry-after"), None);
    assert_eq!(blocked.header("ratelimit"), None);
    assert_eq!(
        problem(&blocked),
        json!({
            "type": "about:blank",
            "title": "Forbidden",
            "status": 403,
            "detail": "This caller is blocked.",
        })
    );
}

#[tokio::test]
async fn a_closure_makes_the_response_and_the_layer_adds_its_headers() {
    let (gate, _) = one_limit("1/min");
    let layer = SpillgateLayer::new(gate).respond_with(|refusal: &Refusal<'_>| {
        assert_eq!(refusal.reason(), Reason::Denied);
        assert_eq!(refusal.request().path(), "/tea");
        assert_eq!(refusal.outcome().unwrap().denied_by(), Some("public"));
        let mut response = Response::new(Body::from("a moment"));
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    });
    assert_eq!(send(&layer, get(PEER, "/tea")).await.status, StatusCode::OK);
    let denied = send(&layer, get(PEER, "/tea")).await;
    assert_eq!((denied.status, &*denied.body), (StatusCode::IM_A_TEAPOT, "a moment"));
    assert_eq!(denied.header("retry-after").unwrap(), "60");
    assert_eq!(denied.header("ratelimit").unwrap(), "\"public\";r=0;t=60");
}

#[tokio::test]
async fn a_time_that_the_closure_tells_stays() {
    let (gate, _) = one_limit("1/min");
    let layer = SpillgateLayer::new(gate).respond_with(|_: &Refusal<'_>| {
        Response::builder().header("retry-after", "7").body(Body::default()).unwrap()
    });
    assert_eq!(send(&layer, get(PEER, "/")).await.header("retry-after"), None);
    assert_eq!(send(&layer, get(PEER, "/")).await.header("retry-after").unwrap(), "7");
}
