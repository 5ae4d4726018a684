#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]
//!
//! ```text
//! client ─ client.rs ─▶ service.rs ─limits─▶ forward.rs ─▶ upstream/ ─▶ upstream
//!          connection     request              request       balance, pool, connections
//! ```
//!
//! A request, its response and the connection to the upstream all live in the task of the client:
//! nothing is passed from task to task, and a client that disconnects takes everything with it.

mod body;
mod client;
mod failure;
mod forward;
pub mod framing;
mod headers;
mod host;
mod metrics;
mod problem;
mod protocol;
mod request;
mod response;
mod response_guard;
mod service;
mod settings;
mod streams;
mod trailers;
mod upgrade;
mod upstream;
mod upstream_status;

use std::sync::Arc;

use arc_swap::ArcSwap;
use spillgate_net::LogLimit;
use tokio::time::sleep;

use self::metrics::Stats;
pub use self::protocol::ProxyProtocol;
pub use self::settings::{
    ClientLimits, HostHeader, ProxySettings, Scheme, UpstreamController, UpstreamUrl,
};
pub use self::streams::{Spawn, TokioSpawn};
use self::upstream::Upstreams;
pub use self::upstream_status::UpstreamStatus;

/// What the connections of a proxy share: its settings, its upstreams and its counters.
#[derive(Debug)]
pub struct Proxy {
    state: ArcSwap<State>,
    stats: Stats,
    log_limit: LogLimit,
}

/// Settings that were [prepared](Proxy::prepare), and their upstreams.
#[derive(Debug)]
pub struct State {
    settings: ProxySettings,
    upstreams: Upstreams,
}

impl Proxy {
    /// A proxy without connections. The error names the setting or file that is wrong.
    pub fn new(settings: ProxySettings) -> Result<Self, String> {
        let upstreams = Upstreams::new(&settings, &[], false)?;
        let state = State { settings, upstreams };
        state.upstreams.adopt_limits();
        let state = ArcSwap::from_pointee(state);
        Ok(Self { state, stats: Stats::default(), log_limit: LogLimit::default() })
    }

    /// Prepares other settings, and fails like [`new`](Self::new). Upstreams that are in both keep
    /// their connections and limits.
    pub fn prepare(&self, settings: ProxySettings) -> Result<State, String> {
        let current = self.state.load();
        let keep = settings.connects_like(&current.settings);
        let upstreams = Upstreams::new(&settings, current.upstreams.all(), keep)?;
        Ok(State { settings, upstreams })
    }

    /// Puts prepared settings in force from the next request on.
    pub fn adopt(&self, state: State) {
        state.upstreams.adopt_limits();
        self.state.store(Arc::new(state));
    }

    /// Checks the health of upstreams and closes idle connections to them, for ever.
    async fn maintain(&self) {
        loop {
            let state = self.state.load_full();
            state.upstreams.maintain(state.settings.health_path.as_ref()).await;
            sleep(state.settings.health_interval).await;
        }
    }
}
