//! Whole conversations, over streams in memory and with time that stands still.

mod commands;
mod connection;
mod pipeline;
mod throttle;

use std::future::pending;
use std::sync::Arc;

use spillgate::algorithm::{Algorithm, TokenBucket};
use spillgate::{Decision, KeyedState, ManualClock, Quota, Timestamp, WhenFull};
use spillgate_policy::Mode;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::{Checked, Checks, Endpoint, Throttle, serve};

type Tested = Endpoint<OneLimit, ManualClock>;

/// A policy of one limit, `api`, of 5 and 1 a second, where only `alice:web` has ever
/// spent anything: all of it; and the same in shadow, `trial`.
#[derive(Debug)]
struct OneLimit;

impl Checks for OneLimit {
    type Error = String;

    async fn check_limit(&self, limit: &str, parts: &[&str], cost: u64) -> Result<Checked, String> {
        if !["api", "trial"].contains(&limit) {
            return Err(format!("there is no limit {limit:?}"));
        }
        let now = Timestamp::from_secs(1_700_000_000);
        let bucket = TokenBucket::new(&Quota::per_second(1).burst(5).build().unwrap()).unwrap();
        let fresh = bucket.fresh(Timestamp::ZERO);
        let is_spent = parts.join(":") == "alice:web";
        let word = if is_spent { bucket.debit_up_to(fresh, now, 5, 5) } else { fresh };
        let mode = if limit == "trial" { Mode::Shadow } else { Mode::Enforce };
        Ok(Checked { decision: Some(Decision::of(bucket, word, now, cost).0), mode })
    }
}

fn endpoint() -> (Tested, ManualClock) {
    let clock = ManualClock::default();
    let throttle = Throttle::with(1000, WhenFull::Evict, KeyedState::new(), clock.clone());
    (Endpoint::new(throttle.unwrap(), OneLimit), clock)
}

/// A client of an endpoint.
struct Talk {
    io: DuplexStream,
    server: JoinHandle<std::io::Result<()>>,
}

impl Talk {
    fn with<C: Checks + 'static>(endpoint: &Arc<Endpoint<C, ManualClock>>) -> Self {
        Self::until(endpoint, pending())
    }

    fn until<C: Checks + 'static>(
        endpoint: &Arc<Endpoint<C, ManualClock>>,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let (io, stream) = duplex(64 * 1024);
        let endpoint = Arc::clone(endpoint);
        let serve = async move { serve(stream, None, &endpoint, shutdown).await };
        Self { io, server: tokio::spawn(serve) }
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.io.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Waits for a reply, which must be this one.
    async fn expect(&mut self, reply: &str) {
        let mut bytes = vec![0; reply.len()];
        self.io.read_exact(&mut bytes).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), reply);
    }

    /// Sends a line, and waits for this reply.
    async fn ask(&mut self, line: &str, reply: &str) {
        self.send(format!("{line}\r\n")).await;
        self.expect(reply).await;
    }

    /// What the server sends until it closes the connection.
    async fn rest(mut self) -> String {
        let mut bytes = Vec::new();
        self.io.read_to_end(&mut bytes).await.unwrap();
        self.server.await.unwrap().unwrap();
        String::from_utf8(bytes).unwrap()
    }
}
