//! A reverse proxy: requests that pass the limits are handed on to other servers.
//!
//! ```text
//! client ─ client.rs ─▶ service.rs ─limits─▶ forward.rs ─▶ upstream/ ─▶ upstream
//!          a connection   a request            a request     balance, pool, connections
//! ```
//!
//! A request, its response and the connection to the upstream all live in the task of the
//! client: nothing is handed from task to task, and a client that leaves takes everything
//! with it.

mod answering;
mod body;
mod client;
mod failure;
mod forward;
mod guard;
mod headers;
mod host;
mod metrics;
mod request;
mod response;
mod service;
mod silence;
mod streams;
mod trailers;
mod upgrade;
mod upstream;

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::time::sleep;

pub(crate) use self::client::serve;
pub(crate) use self::guard::{END, Framing};
pub(crate) use self::metrics::ProxyMetrics;
use self::metrics::Stats;
use self::upstream::Upstreams;
use crate::lifecycle::Seldom;
use crate::settings::ProxySettings;

/// What a proxy is made of, beside its clients.
#[derive(Debug)]
pub(crate) struct Proxy {
    state: ArcSwap<State>,
    stats: Stats,
    /// Whatever goes wrong goes wrong often.
    seldom: Seldom,
}

/// What a proxy goes by, until it is told otherwise.
#[derive(Debug)]
pub(crate) struct State {
    settings: ProxySettings,
    upstreams: Upstreams,
}

impl Proxy {
    /// A proxy that is connected to nobody. An error says which file is wrong, and how to
    /// mend it.
    pub(crate) fn new(settings: ProxySettings) -> Result<Self, String> {
        let upstreams = Upstreams::new(&settings, &[])?;
        let state = ArcSwap::from_pointee(State { settings, upstreams });
        Ok(Self { state, stats: Stats::default(), seldom: Seldom::default() })
    }

    /// What other settings come to. Upstreams that stay keep their connections.
    pub(crate) fn prepare(&self, settings: ProxySettings) -> Result<State, String> {
        let current = self.state.load();
        let stay = match settings.connects_like(&current.settings) {
            true => current.upstreams.all(),
            false => &[],
        };
        let upstreams = Upstreams::new(&settings, stay)?;
        Ok(State { settings, upstreams })
    }

    /// Goes by another state from the next request on.
    pub(crate) fn adopt(&self, state: State) {
        self.state.store(Arc::new(state));
    }

    /// Looks after upstreams and the connections to them, for ever.
    pub(crate) async fn tend(&self) {
        loop {
            let state = self.state.load_full();
            state.upstreams.tend(state.settings.health_path.as_ref()).await;
            sleep(state.settings.health_every).await;
        }
    }
}
