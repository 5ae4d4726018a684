//! The protocols that a server speaks.

pub mod grpc;
pub mod http;
mod report;
pub mod resp;

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use spillgate_net::Protocol;
use spillgate_proxy::{Proxy, ProxyProtocol, Spawn};
use spillgate_redis::inherit_client;
use spillgate_tower::SpillgateLayer;

use self::grpc::{GrpcProtocol, GrpcServer};
use self::http::{HttpProtocol, HttpServer};
use self::resp::{Endpoint, RespProtocol};
use crate::App;
use crate::settings::{Listen, Settings};

/// Every protocol, and where it listens. A new one is added here.
pub(crate) fn all(
    app: &Arc<App>,
    settings: &Settings,
    proxy: Option<Arc<Proxy>>,
) -> Vec<(Arc<dyn Protocol>, Listen)> {
    let endpoint = Endpoint::new(Arc::clone(app.enforcer()))
        .access(app.shared_access())
        .timeouts(settings.timeouts())
        .buffers(settings.max_resp_buffer_bytes);
    let http = HttpServer::new(Arc::clone(app))
        .bounds(settings.bounds())
        .tls(settings.tls().is_some())
        .reservations(settings.max_reservations);
    let http = Arc::new(http);
    let grpc = GrpcServer::new(Arc::clone(app), settings.bounds());
    let mut all: Vec<(Arc<dyn Protocol>, _)> = vec![
        (Arc::new(HttpProtocol::new(&http)), settings.http),
        (Arc::new(RespProtocol::new(endpoint)), settings.resp),
        (Arc::new(GrpcProtocol::new(grpc)), settings.grpc()),
    ];
    if let Some(proxy) = proxy {
        let layer = SpillgateLayer::from(Arc::clone(app.enforcer()));
        let (limits, drain) = (settings.bounds().of_proxy(), app.readiness().drain_signal());
        let drain = Arc::clone(drain);
        let protocol = ProxyProtocol::new(proxy, layer, limits, drain).spawn_with(SpawnForClient);
        all.push((Arc::new(protocol), settings.proxy_listen()));
    }
    all.push((Arc::new(HttpProtocol::admin(&http)), settings.admin));
    all
}

/// Spawns tasks that Redis takes for the client of the current one.
#[derive(Clone, Copy, Debug)]
struct SpawnForClient;

impl Spawn for SpawnForClient {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(inherit_client(future));
    }
}

/// Waits for all of these, so many at a time, and returns their outputs in order.
pub(crate) async fn join_bounded<F: Future>(futures: Vec<F>, at_once: usize) -> Vec<F::Output> {
    if at_once > 1 {
        return stream::iter(futures).buffered(at_once).collect().await;
    }
    // Futures that are ready at once need no queue.
    let mut outputs = Vec::with_capacity(futures.len());
    for future in futures {
        outputs.push(future.await);
    }
    outputs
}
