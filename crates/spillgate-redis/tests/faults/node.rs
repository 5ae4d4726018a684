use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate_policy::{Gate, LimitCheck, Limits, Policy};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};

use crate::common::Bound;
use crate::faults::calls::CallResult;
use crate::is_quiet;

/// The limits of a node, by what they do in an outage, and one that is asked for more than it
/// has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitKind {
    Open,
    Closed,
    Local,
    Hot,
}

impl LimitKind {
    pub(crate) const ALL: [Self; 4] = [Self::Open, Self::Closed, Self::Local, Self::Hot];

    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Local => "local",
            Self::Hot => "hot",
        }
    }
}

/// What the caller under the hot limit has. It is asked for at once, and takes longer to be
/// refilled than a failover takes, so that what was forgiven can be seen.
pub(crate) const HOT: Bound = Bound { burst: 400, interval: 10_000_000 };

/// What a node has of the local limit in an outage, in an hour: none of it is refilled while
/// a test goes on.
pub(crate) const SHARE: u64 = 100;

const NODES: u64 = 10_000;

/// A node of many, with a store over real connections.
#[derive(Clone)]
pub(crate) struct Node(Arc<Gate<RedisStore<Client>>>);

impl Node {
    pub(crate) async fn connect(url: &str) -> Self {
        Self::connect_patiently(url, time_out()).await
    }

    /// One that waits so long for an answer.
    pub(crate) async fn connect_patiently(url: &str, time_out: Duration) -> Self {
        let options = Options::new(url).unwrap().command_time_out(time_out);
        let client = Client::connect(options).await.unwrap();
        let nodes = NonZeroU32::new(NODES as u32).unwrap();
        let store = RedisStore::new(client, &Settings::default().nodes(nodes)).unwrap();
        let policy = Policy::from_toml(&policy()).unwrap();
        Self(Arc::new(Gate::with_store(policy, store).unwrap()))
    }

    /// Asks a limit about a caller.
    pub(crate) async fn ask(&self, limit: LimitKind, caller: &str) -> CallResult {
        let check = LimitCheck { limit: limit.name(), values: &[caller], cost: 1 };
        CallResult::of(&self.0.decide(&Limits(&[check])).await)
    }

    /// How often Redis was down.
    pub(crate) fn outages(&self) -> u64 {
        self.0.store().backend().health().outages
    }

    /// How many calls are under way.
    pub(crate) fn in_flight(&self) -> u64 {
        self.0.store().backend().health().in_flight
    }
}

/// How long a call may take: less than usual, so that outages are noticed soon.
pub(crate) fn time_out() -> Duration {
    Duration::from_millis(if is_quiet() { 50 } else { 100 })
}

fn policy() -> String {
    let limit = |name, quota: String, outage| {
        format!(
            "[[limit]]\nname = '{name}'\nby-name = true\nper = 'user'\nquota = '{quota}'\noutage = '{outage}'\n"
        )
    };
    let plenty = "1000000/s burst 1000000".to_owned();
    let whole = SHARE * NODES;
    [
        limit("open", plenty.clone(), "open"),
        limit("closed", plenty, "closed"),
        limit("local", format!("{whole}/h burst {whole}"), "local"),
        limit("hot", format!("1 per {} ns burst {}", HOT.interval, HOT.burst), "closed"),
    ]
    .concat()
}
