//! A service whose handler computes, on the threads that tokio has for that: all requests in flight
//! share one processor.

use std::hint::black_box;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::routing::get;
use nix::time::{ClockId, clock_gettime};
use spillgate_policy::{Gate, Policy};
use spillgate_tower::SpillgateLayer;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

use crate::Result;

/// Where the handler is.
pub const WORK: &str = "/work";

/// Serves, on a free port that it prints, until it is ended. Without a policy nothing is limited.
pub fn run(cost: Duration, policy: &str) -> Result<()> {
    let work = move |RawQuery(query): RawQuery| work(cost, query);
    let app = Router::new().route(WORK, get(work));
    let app = match policy {
        "" => app,
        text => app.layer(SpillgateLayer::new(Gate::new(Policy::from_toml(text)?)?)),
    };
    // As many threads as there may be requests in flight without a limit.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().max_blocking_threads(10_000).build()?.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?.port());
        io::stdout().flush()?;
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        Ok(axum::serve(listener, service).await?)
    })
}

/// Answers with the query, which is the time at which the request was sent.
async fn work(cost: Duration, query: Option<String>) -> std::result::Result<String, StatusCode> {
    let computed = spawn_blocking(move || compute(cost)).await;
    match computed {
        Ok(Ok(())) => Ok(query.unwrap_or_default()),
        _ => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Uses so much time of the processor, however long that takes.
fn compute(cost: Duration) -> nix::Result<()> {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    let begin = clock_gettime(clock)?;
    while Duration::from(clock_gettime(clock)?) < Duration::from(begin) + cost {
        // Some microseconds: the kernel should not have more to do than the handler.
        black_box((0..10_000_u64).fold(1, |sum, number| black_box(sum ^ number)));
    }
    Ok(())
}
