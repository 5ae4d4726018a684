//! Real servers: Redis or Valkey, alone, behind Sentinels or as a Cluster.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(any(test, feature = "testing"))]
use std::time::Duration;

#[cfg(any(test, feature = "testing"))]
use arc_swap::ArcSwapOption;
use redis::{Cmd, Value};
#[cfg(any(test, feature = "testing"))]
use spillgate::Timestamp;

use self::address::Target;
use self::checks::Checks;
use self::cluster::Cluster;
use self::connection::Connector;
use self::credentials::CredentialStore;
use self::health::Counters;
use self::link::{Link, Trouble};
use self::session::Plan;
use self::unreadable::Unreadable;
use self::whereabouts::{Sentinels, Whereabouts};
use crate::engine::wire::Keys;
#[cfg(any(test, feature = "testing"))]
use crate::engine::wire::{self, Argument};
use crate::engine::{EngineError, Fault};

mod address;
mod bounded;
mod breaker;
mod calls;
mod checks;
mod cluster;
mod connection;
mod credentials;
mod failover;
mod failure;
mod handover;
mod health;
mod info;
mod keep;
mod link;
mod multiplex;
mod options;
mod queue;
mod script;
mod secret;
mod session;
mod signals;
mod stream;
mod subscription;
mod task;
mod tls;
mod unreadable;
mod url;
mod whereabouts;

pub use self::checks::Warnings;
pub use self::health::{Health, RoundTrips};
pub use self::multiplex::answer;
pub use self::options::Options;

/// An engine that is a server, or several.
///
/// Many calls share a connection, and are written together where they come together. While a
/// server is down calls fail at once, and it is tried in the background until it is back.
/// How long a server may take for an answer is bounded by the
/// [time-out](Options::command_time_out). Where more is asked than a server answers, calls wait for
/// up to a second before they are made: limits take turns, and so do tasks under each.
pub struct Server {
    route: Route,
    counters: Arc<Counters>,
    plan: Arc<Plan>,
    keys: Keys,
    unreadable: Unreadable,
    /// True if the server does not let us see which prefixes there are.
    hides_prefixes: AtomicBool,
    /// What stands in for the engine's clock.
    #[cfg(any(test, feature = "testing"))]
    clock: ArcSwapOption<Argument>,
}

enum Route {
    One(Link),
    Cluster(Cluster),
}

impl Server {
    /// Connects, and sees to it that what was found can keep limits.
    ///
    /// # Errors
    ///
    /// If it cannot be reached, refuses us, is too old, may drop keys, or accepts no writes. The
    /// text says what to change.
    pub async fn connect(options: Options) -> Result<Self, EngineError> {
        let (plan, counters) = prepare(options)?;
        let link = async |whereabouts| {
            let (plan, counters) = (plan.clone(), counters.clone());
            let key = probe_key(&plan);
            Link::connect(plan, whereabouts, key, counters).await.map(Route::One)
        };
        let route = match plan.options.target.clone() {
            Target::One(address) => link(Whereabouts::Fixed(address)).await?,
            Target::Sentinel { sentinels, service } => {
                link(Whereabouts::Asked(Sentinels::new(sentinels, service))).await?
            }
            Target::Cluster(seeds) => {
                Route::Cluster(Cluster::connect(plan.clone(), seeds, counters.clone()).await?)
            }
        };
        plan.checks.start();
        Ok(Self::over(route, plan, counters))
    }

    /// Connects in the background. Until that has succeeded, calls fail as in an outage.
    ///
    /// # Errors
    ///
    /// If the options themselves cannot be used, such as a file of certificates, or outside of a
    /// Tokio runtime.
    pub fn connect_later(options: Options) -> Result<Self, EngineError> {
        let (plan, counters) = prepare(options)?;
        let link = |whereabouts| {
            let (plan, counters) = (plan.clone(), counters.clone());
            let key = probe_key(&plan);
            Route::One(Link::connect_later(plan, whereabouts, key, counters))
        };
        let route = match plan.options.target.clone() {
            Target::One(address) => link(Whereabouts::Fixed(address)),
            Target::Sentinel { sentinels, service } => {
                link(Whereabouts::Asked(Sentinels::new(sentinels, service)))
            }
            Target::Cluster(seeds) => {
                Route::Cluster(Cluster::connect_later(plan.clone(), seeds, counters.clone()))
            }
        };
        Ok(Self::over(route, plan, counters))
    }

    fn over(route: Route, plan: Arc<Plan>, counters: Arc<Counters>) -> Self {
        let keys = Keys::new(plan.options.prefix.as_str());
        Self {
            route,
            counters,
            plan,
            keys,
            unreadable: Unreadable::default(),
            hides_prefixes: AtomicBool::new(false),
            #[cfg(any(test, feature = "testing"))]
            clock: ArcSwapOption::empty(),
        }
    }

    /// Decides at this moment from now on, and not by the engine's clock. States expire `margin`
    /// after they could, by that clock.
    #[cfg(any(test, feature = "testing"))]
    pub fn set_now(&self, now: Timestamp, margin: Duration) {
        self.clock.store(Some(Arc::new(wire::override_clock(now, margin))));
    }

    /// What all keys begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.plan.options.prefix
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Health {
        let ((outage, since), load) = match &self.route {
            Route::One(link) => (link.state(), link.load()),
            Route::Cluster(cluster) => (cluster.state(), cluster.load()),
        };
        self.counters.health(outage, since.elapsed(), load)
    }

    /// What is unsafe, although it answers.
    #[must_use]
    pub fn warnings(&self) -> Warnings {
        self.plan.checks.warnings()
    }

    /// Takes user, passwords, certificates and authorities from these options from now on, and
    /// reads their files again. Nothing else of the options counts. If anything has changed,
    /// connections are opened with the new credentials in the background, and take over once
    /// the server has accepted them; until then the old ones are used. Tells whether anything has.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or used. Then everything stays as it is.
    pub fn renew_credentials(&self, options: Options) -> Result<bool, EngineError> {
        self.plan.credentials.replace(options.sources)
    }

    /// Makes a call about keys of one slot.
    async fn call(&self, slot: u16, call: &Cmd) -> Result<Value, EngineError> {
        let link = match &self.route {
            Route::Cluster(cluster) => return cluster.call(slot, call).await,
            Route::One(link) => link,
        };
        let mut time_out = self.plan.options.command_time_out;
        match link.call(call, false, &mut time_out).await {
            Ok(value) => Ok(value),
            Err(Trouble::Failed(error)) => Err(error),
            Err(Trouble::Moved(_) | Trouble::Ask(_) | Trouble::TryAgain) => {
                let engine = &self.plan.options.target;
                let text = format!("{engine} has become a node of a Cluster");
                Err(EngineError::new(Fault::Nonsense, text))
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("target", &self.plan.options.target)
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}

fn prepare(options: Options) -> Result<(Arc<Plan>, Arc<Counters>), EngineError> {
    if tokio::runtime::Handle::try_current().is_err() {
        let text = "an engine can be connected to inside a Tokio runtime only";
        return Err(EngineError::new(Fault::Misconfigured, text));
    }
    let connector = Connector::new(options.connect_time_out);
    let (sources, time_out) = (options.sources.clone(), options.connect_time_out);
    let credentials = Arc::new(CredentialStore::new(sources, time_out)?);
    let in_cluster = matches!(options.target, Target::Cluster(_));
    let checks = Checks::default();
    let plan = Plan { options, connector, credentials, checks, in_cluster };
    Ok((Arc::new(plan), Arc::default()))
}

/// The key by which a server that is not a Cluster's is tried.
fn probe_key(plan: &Plan) -> String {
    format!("{}{{probe}}", plan.options.prefix)
}
