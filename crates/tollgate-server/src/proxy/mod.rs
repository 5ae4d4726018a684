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

mod body;
mod client;
mod failure;
mod forward;
mod headers;
mod metrics;
mod request;
mod response;
mod service;
mod upgrade;
mod upstream;

pub(crate) use self::client::serve;
pub(crate) use self::metrics::ProxyMetrics;
use self::metrics::Stats;
use self::upstream::Upstreams;
use crate::config::ProxySettings;
use crate::server::Seldom;

/// What a proxy is made of, beside its clients.
#[derive(Debug)]
pub(crate) struct Proxy {
    settings: ProxySettings,
    upstreams: Upstreams,
    stats: Stats,
    /// Whatever goes wrong goes wrong often.
    seldom: Seldom,
}

impl Proxy {
    /// A proxy that is connected to nobody. An error says which file is wrong, and how to
    /// mend it.
    pub(crate) fn new(settings: ProxySettings) -> Result<Self, String> {
        let upstreams = Upstreams::new(&settings)?;
        Ok(Self { settings, upstreams, stats: Stats::default(), seldom: Seldom::default() })
    }

    /// Looks after upstreams and the connections to them, for ever.
    pub(crate) async fn tend(&self) {
        self.upstreams.tend(&self.settings).await;
    }
}
