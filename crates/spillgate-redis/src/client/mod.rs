//! A client for Redis and Valkey: one server, Sentinel or Cluster.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redis::{Cmd, Value};
use tokio::task::JoinHandle;

use self::address::Target;
use self::checks::Checks;
use self::cluster::Cluster;
use self::connection::Connector;
use self::credentials::CredentialStore;
use self::discovery::SentinelConnections;
use self::link::{CallError, Link};
use self::session::Plan;
use self::unreadable_log::UnreadableLog;
use crate::backend::{BackendError, Fault, Result};
use crate::script::Keys;

mod address;
mod bounded;
mod breaker;
mod checks;
mod cluster;
mod commands;
mod connection;
mod credentials;
mod discovery;
mod failover;
mod failure;
mod handover;
mod health;
mod info;
mod link;
mod multiplex;
mod options;
mod queue;
mod session;
mod signals;
mod stream;
mod subscription;
mod supervisor;
mod tls;
mod unreadable_log;
mod url;

pub use self::checks::Warnings;
pub use self::health::{Health, RoundTrips};
pub use self::multiplex::parse_reply;
pub use self::options::Options;

/// A client for one server, a service behind Sentinels, or a Cluster.
///
/// Calls share a connection and are pipelined. While a server is down, calls fail at once (circuit
/// breaker), and it is probed in the background. Replies are bounded by the
/// [timeout](Options::command_time_out). Under overload, calls are queued for up to a second:
/// limits take turns, and so do tasks under each.
pub struct Client {
    route: Route,
    plan: Arc<Plan>,
    keys: Keys,
    unreadable: UnreadableLog,
    /// True if the ACL forbids reading other prefixes.
    hides_prefixes: AtomicBool,
    /// Replaces the clock of Redis.
    #[cfg(any(test, feature = "testing"))]
    clock: arc_swap::ArcSwapOption<crate::script::Argument>,
}

enum Route {
    One(Link),
    Cluster(Cluster),
}

impl Client {
    /// Connects, and checks that the servers can keep limits.
    ///
    /// # Errors
    ///
    /// If a server cannot be reached, refuses the credentials, is too old, may evict keys, or
    /// accepts no writes. The message says what to change.
    pub async fn connect(options: Options) -> Result<Self> {
        let plan = prepare(options)?;
        let route = match plan.options.target.clone() {
            Target::Cluster(seeds) => Route::Cluster(Cluster::connect(plan.clone(), seeds).await?),
            target => Route::One(Link::connect(plan.clone(), target, probe_key(&plan)).await?),
        };
        plan.checks.start();
        Ok(Self::over(route, plan))
    }

    /// Connects in the background. Until then, calls fail as in an outage.
    ///
    /// # Errors
    ///
    /// If the options are unusable, such as a certificate file, or outside of a Tokio runtime.
    pub fn connect_later(options: Options) -> Result<Self> {
        let plan = prepare(options)?;
        let route = match plan.options.target.clone() {
            Target::Cluster(seeds) => Route::Cluster(Cluster::connect_later(plan.clone(), seeds)),
            target => Route::One(Link::connect_later(plan.clone(), target, probe_key(&plan))),
        };
        Ok(Self::over(route, plan))
    }

    fn over(route: Route, plan: Arc<Plan>) -> Self {
        Self {
            route,
            keys: Keys::new(plan.options.prefix.as_str()),
            plan,
            unreadable: UnreadableLog::default(),
            hides_prefixes: AtomicBool::new(false),
            #[cfg(any(test, feature = "testing"))]
            clock: arc_swap::ArcSwapOption::empty(),
        }
    }

    /// Decides at this time from now on. States expire `margin` after they could, by the clock of
    /// Redis.
    #[cfg(any(test, feature = "testing"))]
    pub fn set_now(&self, now: spillgate::Timestamp, margin: std::time::Duration) {
        self.clock.store(Some(Arc::new(crate::script::override_clock(now, margin))));
    }

    /// The prefix of all keys.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.plan.options.prefix
    }

    /// The current state and counters.
    #[must_use]
    pub fn health(&self) -> Health {
        let ((outage, since), load) = match &self.route {
            Route::One(link) => (link.state(), link.load()),
            Route::Cluster(cluster) => (cluster.state(), cluster.load()),
        };
        self.plan.counters.health(outage, since.elapsed(), load)
    }

    /// What is unsafe, although Redis answers.
    #[must_use]
    pub fn warnings(&self) -> Warnings {
        self.plan.checks.warnings()
    }

    /// Renews user, passwords and certificates from these options, and reads their files again;
    /// other options are ignored. If anything has changed, new connections are opened in the
    /// background and take over once the server has accepted them. Returns whether anything has
    /// changed.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or used. Then nothing changes.
    pub fn renew_credentials(&self, options: Options) -> Result<bool> {
        self.plan.credentials.replace(options.sources)
    }

    /// Makes a call on so many keys of one slot.
    async fn call(&self, slot: u16, keys: usize, call: &Cmd) -> Result<Value> {
        let link = match &self.route {
            Route::Cluster(cluster) => return cluster.call(slot, keys, call).await,
            Route::One(link) => link,
        };
        let mut time_out = self.plan.options.command_time_out;
        match link.call(call, false, &mut time_out).await {
            Ok(value) => Ok(value),
            Err(CallError::Failed(error)) => Err(error),
            Err(CallError::Moved(_) | CallError::Ask(_) | CallError::TryAgain) => {
                let target = &self.plan.options.target;
                let text = format!("{target} has become a node of a Cluster");
                Err(BackendError::new(Fault::Nonsense, text))
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("target", &self.plan.options.target)
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}

fn prepare(options: Options) -> Result<Arc<Plan>> {
    if tokio::runtime::Handle::try_current().is_err() {
        let text = "connect to Redis inside a Tokio runtime";
        return Err(BackendError::new(Fault::Misconfigured, text));
    }
    let connector = Connector { time_out: options.connect_time_out };
    let (sources, time_out) = (options.sources.clone(), options.connect_time_out);
    let credentials = Arc::new(CredentialStore::new(sources, time_out)?);
    let in_cluster = matches!(options.target, Target::Cluster(_));
    Ok(Arc::new(Plan {
        options,
        connector,
        credentials,
        checks: Checks::default(),
        sentinels: SentinelConnections::default(),
        counters: Arc::default(),
        in_cluster,
    }))
}

/// The key for probing a server outside of a Cluster.
fn probe_key(plan: &Plan) -> String {
    format!("{}{{probe}}", plan.options.prefix)
}

/// A background task that is aborted when this is dropped.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl AbortOnDrop {
    fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
