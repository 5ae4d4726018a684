//! An axum server with a rate limit, metrics and graceful shutdown.
//!
//! The limit is one layer around the router: five requests at once per client address, then one per second. The
//! sixth gets a 429 with `Retry-After`. No limit applies to `/metrics`, which Prometheus scrapes.
//!
//! ```text
//! cargo run -p axum-server
//! for i in 1 2 3 4 5 6; do curl -i http://127.0.0.1:3000/hello; done
//! curl http://127.0.0.1:3000/metrics
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use spillgate_policy::{Gate, Limit, Policy};
use spillgate_tower::{Metrics, SpillgateLayer};
use tokio::net::TcpListener;

fn app() -> Result<Router, spillgate_policy::Error> {
    let hello = Limit::new("hello", "1/s burst 5").path("/hello");
    let policy = Policy::builder().limit(hello).build()?;

    let metrics = Metrics::new();
    let layer = SpillgateLayer::new(Gate::new(policy)?).metrics(metrics.clone());
    Ok(Router::new()
        .route("/hello", get(async || "Hello.\n"))
        .route(
            "/metrics",
            get(async move || ([(CONTENT_TYPE, Metrics::CONTENT_TYPE)], metrics.encode())),
        )
        // A layer wraps the routes that were added before it.
        .layer(layer))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The layer logs denials with `tracing`, rate-limited.
    tracing_subscriber::fmt().init();

    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    // Required: without the connect info all clients would share one allowance.
    let service = app()?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(shutdown()).await?;
    Ok(())
}

/// Resolves on Ctrl-C: requests in flight are still answered.
async fn shutdown() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::extract::ConnectInfo;
    use axum::http::{Request, StatusCode};
    use axum::response::Response;
    use tower::ServiceExt;

    use super::*;

    async fn get(app: &Router, path: &str) -> Response {
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        let client = SocketAddr::from(([203, 0, 113, 7], 54321));
        request.extensions_mut().insert(ConnectInfo(client));
        app.clone().oneshot(request).await.unwrap()
    }

    async fn body(response: Response) -> String {
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.into()).unwrap()
    }

    #[tokio::test]
    async fn the_sixth_request_at_once_is_denied_and_learns_when_to_retry() {
        let app = app().unwrap();
        for left in ["4", "3", "2", "1", "0"] {
            let response = get(&app, "/hello").await;
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["x-ratelimit-remaining"], left);
        }
        let denied = get(&app, "/hello").await;
        assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(denied.headers()["content-type"], "application/problem+json");
        assert_eq!(denied.headers()["retry-after"], "1");
        assert!(body(denied).await.contains(r#""violated-policies":["hello"]"#));
    }

    #[tokio::test]
    async fn prometheus_sees_every_decision_and_is_not_limited() {
        let app = app().unwrap();
        for _ in 0..6 {
            get(&app, "/hello").await;
        }
        for _ in 0..10 {
            assert_eq!(get(&app, "/metrics").await.status(), StatusCode::OK);
        }
        let metrics = body(get(&app, "/metrics").await).await;
        for line in [
            r#"spillgate_requests_total{limit="hello",outcome="allowed"} 5"#,
            r#"spillgate_requests_total{limit="hello",outcome="denied"} 1"#,
        ] {
            assert!(metrics.contains(line), "{line} is not in {metrics}");
        }
    }
}
