//! Spillgate is killed under load and started again: what Envoy does meanwhile is for its
//! `failure_mode_deny` to say, and what was spent is in the snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use spillgate_testing::Port;
use tokio::time::sleep;

use super::instance::{Envoy, get};
use super::requests::PATIENT;
use crate::common::server::{Home, Server, until};
use crate::envoy::client::{SERVER, metric, write};

const RULES: &str = "domain: edge\ndescriptors:\n\
    - {key: remote_address, rate_limit: {unit: year, requests_per_unit: 60}}\n";

/// Spillgate with files and a snapshot, which can be started again where it was.
struct Spillgate {
    home: Home,
    arguments: Vec<String>,
}

impl Spillgate {
    fn new() -> Self {
        let home = Home::new(SERVER);
        let folder = home.path("envoy");
        std::fs::create_dir(&folder).unwrap();
        write(&folder, "edge.yaml", RULES);
        let state = home.path("state");
        let arguments =
            ["--snapshot-interval", "100ms", "--envoy-config", folder.to_str().unwrap()];
        let arguments = arguments.into_iter().chain(["--snapshot", state.to_str().unwrap()]);
        Self { arguments: arguments.map(str::to_owned).collect(), home }
    }

    fn start(&self, grpc: &str) -> Server {
        let mut arguments: Vec<_> = self.arguments.iter().map(String::as_str).collect();
        arguments.extend(["--grpc", grpc]);
        self.home.start(&arguments)
    }
}

/// Clients that ask without a pause, and what they were told.
#[derive(Default)]
struct Load {
    passed: AtomicUsize,
    refused: AtomicUsize,
    failed: AtomicUsize,
    is_over: AtomicBool,
}

impl Load {
    fn begin(envoy: &Envoy) -> Arc<Self> {
        let load = Arc::new(Self::default());
        for _ in 0..4 {
            let (load, address) = (Arc::clone(&load), envoy.address);
            tokio::spawn(async move {
                while !load.is_over.load(Ordering::SeqCst) {
                    let count = match get(address, "/", [127, 0, 0, 1].into()).await.status {
                        200 => &load.passed,
                        429 => &load.refused,
                        500 => &load.failed,
                        other => panic!("{other}"),
                    };
                    count.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        load
    }

    /// Waits until there are so many more of something.
    async fn more(&self, what: &str, of: impl Fn(&Self) -> &AtomicUsize, more: usize) {
        let goal = of(self).load(Ordering::SeqCst) + more;
        for _ in 0..2400 {
            if of(self).load(Ordering::SeqCst) >= goal {
                return;
            }
            sleep(Duration::from_millis(25)).await;
        }
        panic!("in vain waited for: {what}");
    }
}

/// Waits until a snapshot is written that was begun after this.
fn saved(server: &Server) {
    let written = || metric(server, "spillgate_snapshot_writes_total{outcome=\"written\"}");
    let before = written();
    until("a snapshot", || written() >= before + 2.0);
}

/// Kills Spillgate under load, and starts it again where it was. Tells what came through to the
/// service before, while it was away, and after.
async fn killed(deny: bool) -> [usize; 3] {
    let spillgate = Spillgate::new();
    let port = Port::reserve();
    let grpc = port.to_string();
    let server = spillgate.start(&grpc);
    let change = ("failure_mode_deny: true", &*format!("failure_mode_deny: {deny}"));
    let envoy = Envoy::start_with(server.grpc, &[change, PATIENT]).await;
    let load = Load::begin(&envoy);
    load.more("refusals", |load| &load.refused, 50).await;
    tokio::task::block_in_place(|| saved(&server));
    let before = envoy.served();
    tokio::task::block_in_place(|| server.kill());
    if deny {
        load.more("failures", |load| &load.failed, 50).await;
    } else {
        load.more("requests that pass", |load| &load.passed, 50).await;
    }
    let server = tokio::task::block_in_place(|| spillgate.start(&grpc));
    load.more("refusals again", |load| &load.refused, 50).await;
    let away = envoy.served();
    load.more("refusals still", |load| &load.refused, 100).await;
    let after = envoy.served();
    load.is_over.store(true, Ordering::SeqCst);
    tokio::task::block_in_place(|| server.stop());
    [before, away, after]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn with_failure_mode_deny_nothing_passes_while_spillgate_is_away() {
    // Not one more than the quota, although it was killed: the snapshot knows.
    assert_eq!(killed(true).await, [60, 60, 60]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn without_failure_mode_deny_everything_passes_until_spillgate_is_back() {
    let [before, away, after] = killed(false).await;
    assert_eq!(before, 60);
    assert!(away >= before + 50, "{away}");
    // What was asked before it was back may have passed after.
    assert!(after <= away + 4, "{away} {after}");
}
