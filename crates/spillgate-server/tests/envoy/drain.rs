//! A server that ends while it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonic::Code;

use crate::common::goaway::is_goaway;
use crate::common::server::until;
use crate::envoy::client::{Client, OK, OVER_LIMIT, descriptor, metric, start};

const FILE: &str = "domain: edge\ndescriptors:\n\
    - {key: k, rate_limit: {unit: day, requests_per_unit: 3000}}\n";

/// Asks until the server is gone, and counts what was allowed.
async fn ask_on(mut client: Client, allowed: Arc<AtomicU64>) {
    let k = [descriptor(&[("k", "v")])];
    loop {
        match client.try_ask("edge", 0, &k).await {
            Ok(answer) if answer.overall_code == OK => {
                allowed.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {}
            // A call is not sent, or the connection ends before it is.
            Err(error) => {
                assert!(
                    [Code::Unavailable, Code::Unknown, Code::Cancelled].contains(&error.code())
                        || is_goaway(&error),
                    "{error}"
                );
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_that_was_counted_was_answered_and_the_next_server_knows_it() {
    let home = crate::common::server::Home::new(crate::envoy::client::SERVER);
    let folder = home.path("envoy");
    std::fs::create_dir(&folder).unwrap();
    crate::envoy::client::write(&folder, "edge.yaml", FILE);
    let (folder, state) = (folder.to_str().unwrap().to_owned(), home.path("state"));
    let arguments = ["--envoy-config", &folder, "--snapshot", state.to_str().unwrap()];
    let server = home.start(&arguments);
    let allowed = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let client = Client::to(&server).await;
        tasks.push(tokio::spawn(ask_on(client, Arc::clone(&allowed))));
    }
    until("some calls", || allowed.load(Ordering::Relaxed) > 200);
    server.signal("TERM");
    for task in tasks {
        task.await.unwrap();
    }
    let (status, log) = server.wait();
    assert!(status.success(), "{log}");
    let server = home.start(&arguments);
    let mut client = Client::to(&server).await;
    let left = client
        .status("edge", &crate::envoy::client::with_hits(&descriptor(&[("k", "v")]), 0))
        .await;
    assert_eq!(3000 - u64::from(left.limit_remaining), allowed.load(Ordering::Relaxed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_on_one_connection_admit_exactly_the_quota() {
    let (_home, server) = start("", &[("edge.yaml", &FILE.replace("3000", "1000"))], &[]);
    let client = Client::to(&server).await;
    let calls = (0..3000).map(|_| {
        let mut client = client.clone();
        tokio::spawn(
            async move { client.ask("edge", &[descriptor(&[("k", "v")])]).await.overall_code },
        )
    });
    let mut codes = [0; 3];
    for call in calls.collect::<Vec<_>>() {
        codes[call.await.unwrap() as usize] += 1;
    }
    assert_eq!(codes[OK as usize], 1000);
    assert_eq!(codes[OVER_LIMIT as usize], 2000);
    assert_eq!(metric(&server, "spillgate_grpc_calls_total{code=\"OK\"}"), 3000.0);
    assert_eq!(metric(&server, "spillgate_connections_total{protocol=\"grpc\"}"), 1.0);
}
