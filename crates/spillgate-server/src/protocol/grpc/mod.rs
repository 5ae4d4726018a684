//! gRPC: Envoy's rate-limit service, health and reflection.
//!
//! `envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit` is answered in the connection's
//! task: calls that arrive together are answered with one write. See `docs/envoy.md`.

mod body;
mod call;
mod connection;
mod health;
pub mod messages;
mod metadata;
mod pipe;
mod protocol;
mod reply;
mod request;
mod response;
mod side_services;
mod stats;

use std::sync::Arc;

pub use self::connection::serve;
pub(crate) use self::protocol::{DEFAULT_PORT, GrpcProtocol};
pub(crate) use self::request::DecodedRequest;
use self::side_services::SideServices;
use self::stats::GrpcStats;
use super::http::Bounds;
use crate::App;

/// What all connections share.
#[derive(Debug)]
pub struct GrpcServer {
    app: Arc<App>,
    bounds: Bounds,
    side_services: SideServices,
    stats: GrpcStats,
}

impl GrpcServer {
    /// A server for this application, with these bounds on heads and time.
    pub fn new(app: Arc<App>, bounds: Bounds) -> Self {
        let side_services = SideServices::new(Arc::clone(app.readiness()));
        Self { app, bounds, side_services, stats: GrpcStats::default() }
    }
}

/// Bytes of a message. Envoy's are of some hundred.
const MESSAGE: usize = 64 * 1024;

/// Descriptors of a call.
pub(crate) const DESCRIPTORS: usize = 256;

/// Entries of a descriptor.
pub(crate) const ENTRIES: usize = 64;

/// Calls that a connection may have open. Those beyond wait with the client.
const STREAMS: u32 = 1_024;

/// Bytes of messages that a connection may have under way.
const WINDOW: u32 = 1024 * 1024;
