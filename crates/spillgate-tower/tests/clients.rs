//! Clients of other makers do as they are told: they wait as long as `Retry-After` says,
//! and the first retry succeeds.

use std::net::SocketAddr;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::get;
use spillgate_policy::{Gate, Limit, Policy};
use spillgate_tower::SpillgateLayer;

/// Serves on a free port, two requests at once and two a second, and counts all requests.
async fn serve() -> (SocketAddr, Arc<AtomicUsize>) {
    let policy = Policy::builder().limit(Limit::new("api", "2/s burst 2")).build().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let count = move |request: Request, next: Next| {
        counter.fetch_add(1, Ordering::Relaxed);
        next.run(request)
    };
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(SpillgateLayer::new(Gate::new(policy).unwrap()))
        .layer(from_fn(count));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, asked)
}

/// What a program prints.
async fn run(program: &'static str, arguments: Vec<String>) -> String {
    let mut command = spillgate_testing::program(program);
    let run = move || command.args(arguments).output();
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{program} failed: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

#[tokio::test]
async fn curl_succeeds_at_the_first_retry() {
    let (address, asked) = serve().await;
    let url = format!("http://{address}/");
    let options = ["--silent", "--show-error", "--fail", "--retry", "1", "--noproxy", "*"];
    // Three requests over one connection: the third is denied once.
    let arguments = options.into_iter().map(str::to_owned).chain(vec![url; 3]).collect();
    assert_eq!(run("curl", arguments).await, "hello\n".repeat(3));
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn urllib3_succeeds_at_the_first_retry() {
    const PROGRAM: &str = "\
import sys, urllib3
retry = urllib3.Retry(total=1, status_forcelist=[429], respect_retry_after_header=True)
http = urllib3.PoolManager(retries=retry)
for _ in range(3):
    response = http.request('GET', sys.argv[1])
    print(response.status, len(response.retries.history))
";
    let (address, asked) = serve().await;
    let arguments = vec!["-c".to_owned(), PROGRAM.to_owned(), format!("http://{address}/")];
    assert_eq!(run("target/python/bin/python", arguments).await, "200 0\n200 0\n200 1\n");
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}
