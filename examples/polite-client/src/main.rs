//! A client that keeps to the limits of the service it calls.
//!
//! A service allows fifty requests per second, ten at once, and says so in its headers. A hundred tasks send two hundred
//! requests to it with reqwest, and know none of that. The layer learns it from the first responses: nearly all requests
//! pass, at the rate of the service.
//!
//! `cargo run -p polite-client` takes about four seconds.

use std::net::SocketAddr;

use axum::{Router, routing::get};
use bytes::Bytes;
use spillgate_client::{BoxError, ClientLayer};
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;
use tower::{Layer, Service, ServiceExt, service_fn};

const TASKS: usize = 100;
const REQUESTS_PER_TASK: usize = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let address = serve().await?;
    let layer = ClientLayer::learning();
    // Redirects and retries of its own would not be counted.
    let reqwest = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .build()?;
    let client = layer.layer(reqwest_service(reqwest));

    let tasks = (0..TASKS).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            for _ in 0..REQUESTS_PER_TASK {
                let request = http::Request::get(format!("http://{address}/")).body(Bytes::new())?;
                let response = client.clone().oneshot(request).await?;
                assert_eq!(response.status(), 200);
            }
            Ok::<_, BoxError>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }

    let counts = layer.counts();
    println!("{} requests, {} refused, {} retried", counts.sent, counts.refused, counts.retries);
    for (limit, state) in layer.status().iter().flat_map(|budget| &budget.limits) {
        let name = limit.name.as_deref().unwrap_or("without a name");
        let (all, rate) = (state.limit, state.refill_per_second);
        println!(
            "  limit {name}: {} of {all} left, measured refill {rate:.0} per second",
            state.remaining
        );
    }
    Ok(())
}

/// The service, on a free port.
async fn serve() -> Result<SocketAddr, BoxError> {
    let app = Router::new()
        .route("/", get(async || "hello"))
        .layer(SpillgateLayer::per_ip("50/s burst 10")?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(address)
}

/// reqwest as a service for requests of the `http` crate.
fn reqwest_service(
    client: reqwest::Client,
) -> impl Service<
    http::Request<Bytes>,
    Response = http::Response<reqwest::Body>,
    Error = reqwest::Error,
    Future: Send,
> + Clone
+ Send {
    service_fn(move |request: http::Request<Bytes>| {
        let client = client.clone();
        async move { Ok(client.execute(request.try_into()?).await?.into()) }
    })
}
