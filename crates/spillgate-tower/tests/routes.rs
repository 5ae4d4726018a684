//! Layers around a whole router, a nested one and a single route of axum.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::MockConnectInfo;
use axum::routing::get;
use http::Request;
use spillgate_tower::SpillgateLayer;
use tower::ServiceExt;

use crate::common::{gate, one_limit};

async fn status(app: &Router, path: &str) -> u16 {
    let request = Request::get(path).body(Body::empty()).unwrap();
    app.clone().oneshot(request).await.unwrap().status().as_u16()
}

fn peer() -> MockConnectInfo<SocketAddr> {
    MockConnectInfo(SocketAddr::from(([203, 0, 113, 7], 1234)))
}

#[tokio::test]
async fn a_route_can_have_a_gate_of_its_own() {
    let (login, _) = one_limit("1/h burst 2");
    let (all, _) = one_limit("1/h burst 5");
    let login = get(async || "welcome").layer(SpillgateLayer::new(login));
    let app = Router::new()
        .route("/login", login)
        .route("/", get(async || "hello"))
        .layer(SpillgateLayer::new(all))
        .layer(peer());
    assert_eq!(status(&app, "/login").await, 200);
    assert_eq!(status(&app, "/login").await, 200);
    assert_eq!(status(&app, "/login").await, 429, "the route's own gate");
    assert_eq!(status(&app, "/").await, 200);
    assert_eq!(status(&app, "/").await, 200);
    assert_eq!(status(&app, "/").await, 429, "the router's gate, which saw all of them");
}

#[tokio::test]
async fn both_gates_of_a_route_are_told() {
    let (login, _) = one_limit("1/h burst 2");
    let (all, _) = one_limit("1/h burst 5");
    let login = get(async || "welcome").layer(SpillgateLayer::new(login));
    let app = Router::new().route("/login", login).layer(SpillgateLayer::new(all)).layer(peer());
    let request = Request::get("/login").body(Body::empty()).unwrap();
    let response = app.oneshot(request).await.unwrap();
    let message: Vec<_> = response.headers().get_all("ratelimit").iter().collect();
    assert_eq!(message, ["\"public\";r=1;t=3600", "\"public\";r=4;t=3600"]);
    assert_eq!(response.headers()["x-ratelimit-remaining"], "1");
}

#[tokio::test]
async fn a_nested_router_is_limited_by_the_path_that_the_client_sent() {
    let policy = "[[limit]]\nname = \"login\"\nquota = \"1/h\"\nmatch = { path = \"/api/login\" }";
    let inner = Router::new()
        .route("/login", get(async || "welcome"))
        .layer(SpillgateLayer::new(gate(policy).0));
    let app = Router::new().nest("/api", inner).layer(peer());
    assert_eq!(status(&app, "/api/login").await, 200);
    assert_eq!(status(&app, "/api/login").await, 429);
}
