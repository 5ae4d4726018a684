//! Whole conversations, over streams in memory and with time that stands still.

mod commands;
mod connection;
mod permits_and_bans;
mod pipeline;
mod reports;
mod throttle;
mod top;

use std::future::pending;
use std::sync::Arc;

use spillgate::{ManualClock, WhenFull};
use spillgate_enforce::Enforcer;
use spillgate_policy::store::{Memory, Store};
use spillgate_policy::{Gate, LimitCheck, Policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::{Endpoint, serve};

type Tested = Endpoint<Memory<ManualClock>>;

/// Limits of 5, refilled by 1 per second: per one part, two, none, and two in shadow mode.
const POLICY: &str = "
    limit = [
        { name = 'api', quota = '1/s burst 5', per = 'header:x-key' },
        { name = 'pair', quota = '1/s burst 5', per = ['header:x-key', 'header:x-app'] },
        { name = 'total', quota = '1/s burst 5', per = 'global' },
        { name = 'trial', quota = '1/s burst 5', per = ['header:x-key', 'header:x-app'], mode = 'shadow' },
    ]";

/// An endpoint where only `alice` of `web` has spent anything: all of it.
fn endpoint() -> (Tested, ManualClock) {
    let clock = ManualClock::default();
    (endpoint_on(Memory::new(clock.clone()), 1000, WhenFull::Evict), clock)
}

fn endpoint_on<S: Store>(store: S, keys: usize, when_full: WhenFull) -> Endpoint<S> {
    let policy = Policy::from_toml(POLICY).unwrap().with_throttle(keys, when_full);
    let gate = Gate::with_store(policy, store).unwrap();
    let pair = ["alice", "web"];
    for (limit, values) in [("api", &["alice:web"][..]), ("pair", &pair), ("trial", &pair)] {
        gate.try_decide(&LimitCheck::new(limit, values, 5), |it| assert!(it.unwrap().is_allowed()));
    }
    Endpoint::new(Arc::new(Enforcer::new(gate)))
}

struct Talk {
    io: DuplexStream,
    server: JoinHandle<std::io::Result<()>>,
}

impl Talk {
    fn with<S: Store>(endpoint: &Arc<Endpoint<S>>) -> Self {
        Self::until(endpoint, pending())
    }

    fn until<S: Store>(
        endpoint: &Arc<Endpoint<S>>,
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

    /// The next bytes of a reply.
    async fn take(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.io.read_exact(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Reads to the end of a line.
    async fn skip_line(&mut self) {
        self.line().await;
    }

    /// The rest of a line.
    async fn line(&mut self) -> String {
        let mut line = String::new();
        while !line.ends_with("\r\n") {
            line.push(self.io.read_u8().await.unwrap().into());
        }
        line
    }

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
