//! An axum server with a rate limit, metrics and a graceful shutdown.
//!
//! The limit is one layer around the router. A client may send five requests at once, and
//! one a second from then on; the sixth is told how long to wait. Prometheus reads
//! `/metrics`, which no limit is for.
//!
//! `cargo run -p axum-server` starts the server, visits it and checks what comes back, in a
//! second. `cargo run -p axum-server -- --serve` just serves.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use spillgate_policy::{Gate, Limit, Policy};
use spillgate_tower::{Metrics, SpillgateLayer};
use tokio::sync::Notify;
use visit::{Client, Outcome, Visit};

const TO_TRY: &str = "
for i in 1 2 3 4 5 6; do curl -i URL/hello; done
curl URL/metrics
";

/// How the script knows when to stop the server, and does.
#[derive(Default)]
struct Signals {
    working: Notify,
    stop: Notify,
}

fn app(signals: Arc<Signals>) -> Result<Router, spillgate_policy::Error> {
    // `/metrics` meets no limit: whoever watches over the service must not be refused.
    let hello = Limit::new("hello", "1/s burst 5").path("/hello");
    let policy = Policy::builder().limit(hello).build()?;

    let metrics = Metrics::new();
    let layer = SpillgateLayer::new(Gate::new(policy)?).metrics(metrics.clone());
    Ok(Router::new()
        .route("/hello", get(async || "Hello.\n"))
        .route("/slow", get(async move || slow(&signals).await))
        .route(
            "/metrics",
            get(async move || ([(CONTENT_TYPE, Metrics::CONTENT_TYPE)], metrics.encode())),
        )
        // After the routes: a layer is around what the router has by then.
        .layer(layer))
}

async fn slow(signals: &Signals) -> &'static str {
    signals.working.notify_one();
    tokio::time::sleep(Duration::from_millis(100)).await;
    "Done.\n"
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    // The layer logs whom it refuses with `tracing`, some ten lines a second at most.
    tracing_subscriber::fmt().without_time().init();

    let (listener, visit) = Visit::begin().await?;
    let signals = Arc::new(Signals::default());
    // Without the connect info nobody would know who is calling, and all clients would
    // share one allowance.
    let app = app(Arc::clone(&signals))?.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, app).with_graceful_shutdown(stopped(Arc::clone(&signals)));
    visit.play(server, TO_TRY, async |client| script(&client, &signals).await).await
}

async fn stopped(signals: Arc<Signals>) {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = signals.stop.notified() => {}
    }
}

async fn script(client: &Client, signals: &Signals) -> Outcome {
    println!("Five at once, and the headers say how many are left:");
    for left in (0..5).rev() {
        let reply = client.get("/hello").await?;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("x-ratelimit-remaining"), left.to_string());
    }

    println!("\nThe sixth is too many. All that a client needs to know is in the response:");
    let refused = client.get("/hello").await?;
    println!("{refused}");
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("content-type"), "application/problem+json");
    assert_eq!(refused.header("retry-after"), "1");
    assert!(refused.body.contains(r#""violated-policies":["hello"]"#));

    println!("\nWhoever waits as long as it says is served:");
    visit::wait_for(&refused).await?;
    assert_eq!(client.get("/hello").await?.status, 200);

    println!("\nWhat Prometheus sees:");
    let metrics = client.get("/metrics").await?.body;
    for line in metrics.lines().filter(|line| line.starts_with("spillgate_requests_total")) {
        println!("    {line}");
    }
    assert!(metrics.contains(r#"spillgate_requests_total{limit="hello",outcome="allowed"} 6"#));
    assert!(metrics.contains(r#"spillgate_requests_total{limit="hello",outcome="denied"} 1"#));

    println!("\nThe server is told to stop. What it is working on, it still answers:");
    let (slow, ()) = tokio::join!(client.get("/slow").into_future(), async {
        signals.working.notified().await;
        signals.stop.notify_one();
    });
    assert_eq!(slow?.status, 200);
    assert!(client.get("/hello").await.is_err(), "nobody should be listening any more");
    Ok(())
}
