//! The example of the repository's README limits as it says.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::{Router, routing::get};
use http::{Request, StatusCode};
use spillgate_tower::SpillgateLayer;
use tower::ServiceExt;

const README: &str = include_str!("../../../README.md");

fn app() -> Result<Router, spillgate_policy::Error> {
    Ok(Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(SpillgateLayer::per_ip("10/s burst 20")?))
}

#[test]
fn the_example_is_the_one_of_the_readme() {
    let source = include_str!("readme.rs");
    let example = &source[source.find("fn app()").unwrap()..source.find("#[test]").unwrap()];
    assert!(README.contains(example.trim()), "not in README.md: {example}");
}

#[tokio::test]
async fn the_example_admits_twenty_at_once_per_address() {
    let app = app().unwrap();
    let send = async |peer: [u8; 4]| {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from((peer, 54321))));
        app.clone().oneshot(request).await.unwrap()
    };
    let mut admitted = 0;
    let denied = loop {
        let response = send([203, 0, 113, 7]).await;
        if response.status() != StatusCode::OK {
            break response;
        }
        admitted += 1;
    };
    // One more per tenth of a second that this takes.
    assert!((20..40).contains(&admitted), "{admitted}");
    // As the README of the crate shows it.
    let shown = include_str!("../README.md").split("```text\n").nth(1).unwrap();
    let mut shown = shown.split("```").next().unwrap().lines();
    assert_eq!(shown.next(), Some("HTTP/1.1 429 Too Many Requests"));
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    for line in shown {
        let (name, value) = line.split_once(": ").unwrap();
        assert_eq!(denied.headers()[name], value, "{name}");
    }
    assert_eq!(send([203, 0, 113, 8]).await.status(), StatusCode::OK);
}
