//! A thousand tasks and a real server, in real time. What is asserted are counts: how fast a busy
//! machine is, is not known.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use http::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use spillgate::{Clock, Limiter, SystemClock};
use spillgate_client::ClientLayer;
use spillgate_testing::effort;
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt};

use crate::common::Body;

const TASKS: u64 = 1_000;

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    address
}

/// Sends a request from each task, and returns how many passed.
async fn send_all(layer: &ClientLayer, address: SocketAddr) -> u64 {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let client = layer.layer(client);
    let passed = Arc::new(AtomicU64::new(0));
    let tasks = (0..TASKS).map(|_| {
        let (client, passed) = (client.clone(), Arc::clone(&passed));
        let request = Request::get(format!("http://{address}/")).body(Body::default()).unwrap();
        tokio::spawn(async move {
            let response = client.oneshot(request).await.unwrap();
            let is_passed = response.status() == StatusCode::OK;
            passed.fetch_add(u64::from(is_passed), Ordering::Relaxed);
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    passed.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_pass_a_real_gate_and_next_to_none_is_refused() {
    let app = Router::new().route("/", get(async || "hello"));
    let app = app.layer(SpillgateLayer::per_ip("400/s burst 100").unwrap());
    let address = serve(app).await;
    // No retries: every refusal is seen.
    let layer = ClientLayer::builder().max_retries(0).max_wait(Duration::from_secs(120));
    let layer = layer.build().unwrap();
    let began = SystemClock.now();
    let passed = send_all(&layer, address).await;
    let took = SystemClock.now().since(began).as_secs_f64();
    let counts = layer.counts();
    println!(
        "{:.1} % of the quota used in {took:.2} s, {counts:?}",
        100.0 * passed as f64 / (100.0 + 400.0 * took)
    );
    assert_eq!(counts.sent, TASKS);
    assert!(counts.refused < TASKS / 100, "{counts:?}");
    assert_eq!(passed, TASKS - counts.refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_that_announces_only_retry_after_sees_no_storm() {
    // About so many pass after each second for which the server is left alone.
    let burst = if effort() > 1 { 100 } else { 300 };
    let quota = format!("400/s burst {burst}");
    let limiter: Arc<Limiter<str>> = Arc::new(Limiter::new(&*quota).unwrap());
    let handler = async |State(limiter): State<Arc<Limiter<str>>>| match limiter.check("all") {
        decision if decision.is_allowed() => "hello".into_response(),
        _ => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")]).into_response(),
    };
    let address = serve(Router::new().route("/", get(handler)).with_state(limiter)).await;
    let layer = ClientLayer::builder().max_retries(50);
    let layer = layer.max_wait(Duration::from_secs(120)).build().unwrap();
    let passed = send_all(&layer, address).await;
    let counts = layer.counts();
    println!("{counts:?}");
    // The others got their 429 when the retry budget was used up.
    assert_eq!(passed + counts.retries_denied, TASKS, "{counts:?}");
    assert!(passed > TASKS / 2, "{counts:?}");
    // Each block is the end of a wave, which is no larger than what may be in flight.
    assert!(counts.refused <= 256 * counts.blocks.max(1), "{counts:?}");
    assert!(counts.sent <= 2 * TASKS, "{counts:?}");
}
