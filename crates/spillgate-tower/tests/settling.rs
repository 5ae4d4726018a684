//! Costs that are known only when the response is there.

use http::{Response, StatusCode};
use spillgate_tower::SpillgateLayer;

use crate::common::{Body, PEER, gate, get, send, send_to};

fn answering(
    status: u16,
    header: Option<&'static str>,
) -> impl Fn(http::Request<()>) -> Response<Body> + Clone {
    move |_| {
        let mut response = Response::builder().status(status);
        if let Some(used) = header {
            response = response.header("x-tokens-used", used);
        }
        response.body(Body::default()).unwrap()
    }
}

#[tokio::test]
async fn failed_logins_count_and_successes_are_given_back() {
    let policy = r#"
        [[limit]]
        name = "login"
        quota = "3/h"
        settle = { status = [401, 403] }
    "#;
    let layer = SpillgateLayer::new(gate(policy).0);
    for _ in 0..10 {
        let login = send_to(&layer, get(PEER, "/login"), answering(200, None)).await;
        assert_eq!(login.status, StatusCode::OK);
    }
    for _ in 0..3 {
        let failed = send_to(&layer, get(PEER, "/login"), answering(401, None)).await;
        assert_eq!(failed.status, StatusCode::UNAUTHORIZED);
    }
    let denied = send_to(&layer, get(PEER, "/login"), answering(200, None)).await;
    assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_response_header_tells_the_true_cost() {
    let policy = r#"
        [[limit]]
        name = "tokens"
        quota = "1000/h"
        cost = 100
        settle = { header = "x-tokens-used" }
    "#;
    let (gate, _) = gate(policy);
    let layer = SpillgateLayer::new(gate);
    let remaining =
        async || layer.gate().peek_limit("tokens", &[PEER], 0).await.unwrap().remaining();
    send_to(&layer, get(PEER, "/"), answering(200, Some("30"))).await;
    assert_eq!(remaining().await, 970, "less than was taken");
    send_to(&layer, get(PEER, "/"), answering(200, Some("500"))).await;
    assert_eq!(remaining().await, 470, "more than was taken");
    send_to(&layer, get(PEER, "/"), answering(200, None)).await;
    assert_eq!(remaining().await, 370, "what was taken stands");
    send_to(&layer, get(PEER, "/"), answering(200, Some("5000"))).await;
    assert_eq!(remaining().await, 0);
    let denied = send(&layer, get(PEER, "/")).await;
    assert_eq!(denied.status, StatusCode::TOO_MANY_REQUESTS, "in debt");
}
