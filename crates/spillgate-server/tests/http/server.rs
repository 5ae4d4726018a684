use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use spillgate_policy::{Gate, Policy};
use spillgate_server::protocol::http::{Bounds, HttpServer, serve};
use spillgate_server::{Access, AnyStore, App, Secret};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server on a free port, which ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) app: Arc<App>,
    accepting: JoinHandle<()>,
}

pub(crate) const TOKEN: &str = "open-sesame";
pub(crate) const POLICY: &str = include_str!("policy.toml");

pub(crate) fn token() -> Option<Secret> {
    Secret::new(TOKEN)
}

/// An application with the policy of these tests.
pub(crate) fn app() -> App {
    app_of(POLICY)
}

fn app_of(policy: &str) -> App {
    let gate = Gate::with_store(Policy::from_toml(policy).unwrap(), AnyStore::default()).unwrap();
    App::new(Arc::new(gate), policy).with_access(Access::loopback(token()))
}

/// A server whose metrics the application shows.
pub(crate) fn shown(http: HttpServer) -> Arc<HttpServer> {
    let http = Arc::new(http);
    http.app().register(|registry| http.register(registry.sub_registry_with_prefix("spillgate")));
    http
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(app()).await
    }

    pub(crate) async fn with_policy(policy: &str) -> Self {
        Self::with(app_of(policy)).await
    }

    pub(crate) async fn bounded(bounds: Bounds) -> Self {
        Self::of(HttpServer::new(Arc::new(app())).bounds(bounds)).await
    }

    pub(crate) async fn with(app: App) -> Self {
        Self::of(HttpServer::new(Arc::new(app))).await
    }

    pub(crate) async fn of(http: HttpServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let http = shown(http);
        let app = Arc::clone(http.app());
        app.readiness().start();
        let accepting = tokio::spawn(accept(listener, http));
        Self { address, app, accepting }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, http: Arc<HttpServer>) {
    while let Ok((socket, peer)) = listener.accept().await {
        let http = Arc::clone(&http);
        tokio::spawn(async move {
            socket.set_nodelay(true)?;
            serve(socket, Some(peer), &http, pending()).await
        });
    }
}
