//! The example of the repository's README limits what it says it does.

use std::error::Error;
use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::{Router, routing::post};
use http::{Method, Request, StatusCode};
use spillgate_policy::{Gate, Policy};
use spillgate_tower::SpillgateLayer;
use tower::ServiceExt;

const README: &str = include_str!("../../../README.md");

/// The example, but for the socket.
fn example() -> Result<Router, Box<dyn Error>> {
    let policy = Policy::from_toml(
        r#"
        [[limit]]
        name = "login"
        match = { path = "/login", method = "POST" }
        per = "ip"
        quota = "5/min"
    "#,
    )?;
    let app = Router::new()
        .route("/login", post(|| async { "hello" }))
        .layer(SpillgateLayer::new(Gate::new(policy)?));
    Ok(app)
}

#[test]
fn the_example_is_the_one_of_the_readme() {
    // Without spaces, and commas at the end of what is on several lines.
    let squeezed = |text: &str| text.split_whitespace().collect::<String>().replace("\"#,", "\"#");
    let source = include_str!("readme.rs");
    let begin = source.find("let policy").unwrap();
    let end = source.find("    Ok(app)").unwrap();
    let example = squeezed(&source[begin..end]);
    assert!(squeezed(README).contains(&example), "not in README.md: {example}");
}

#[tokio::test]
async fn the_example_limits_each_address_to_five_logins_a_minute() {
    let app = example().unwrap();
    let login = |method: Method, peer: [u8; 4]| {
        let app = app.clone();
        async move {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            *request.uri_mut() = "/login".parse().unwrap();
            request.extensions_mut().insert(ConnectInfo(SocketAddr::from((peer, 54321))));
            app.oneshot(request).await.unwrap().status()
        }
    };
    let (one, other) = ([203, 0, 113, 7], [203, 0, 113, 8]);
    for _ in 0..5 {
        assert_eq!(login(Method::POST, one).await, StatusCode::OK);
    }
    assert_eq!(login(Method::POST, one).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(login(Method::POST, other).await, StatusCode::OK);
    // There is no such route, and no limit for it.
    assert_eq!(login(Method::GET, one).await, StatusCode::METHOD_NOT_ALLOWED);
}
