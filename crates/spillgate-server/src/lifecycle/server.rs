use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use spillgate_net::metrics::ConnectionMetrics;
use spillgate_net::{
    Listener, OpenConnections, Protocol, Threads, Tls, Workers, drain, raise_nofile_limit,
};
use spillgate_policy::Policy;
use spillgate_proxy::Proxy;
use tokio::net::TcpListener;
use tokio::sync::watch as channel;
use tokio::task::{AbortHandle, JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};
use tracing::info;

use super::banner::Banner;
use super::reload::{self, Reloader};
use super::snapshotter::{SnapshotMetrics, Snapshotter};
use super::{shared_store, state};
use crate::live::Live;
use crate::settings::{Config, Listen, Source, TlsFiles, Token};
use crate::snapshot::SnapshotFile;
use crate::{App, SharedStore, log, protocol};

#[derive(Debug)]
pub(super) struct Server {
    app: Arc<App>,
    listeners: Vec<JoinHandle<OpenConnections>>,
    stop: channel::Sender<bool>,
    /// Snapshots, the configuration watcher, and what protocols run in the background.
    background: Vec<AbortHandle>,
    snapshotter: Option<Snapshotter>,
    reloader: Arc<Reloader>,
    shared: Option<Arc<SharedStore>>,
    lame_duck: Duration,
    drain: Duration,
}

/// How long a start waits for what other servers have changed. In an outage it arrives later.
const FIRST_EDITS: Duration = Duration::from_secs(2);

/// A protocol, and the socket it will be served on.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) protocol: Arc<dyn Protocol>,
    pub(super) socket: TcpListener,
}

impl Server {
    /// Restores the snapshot, and starts to listen.
    pub(super) async fn start(source: Source) -> Result<Self, Box<dyn Error>> {
        let (config, policy) = source.load(None)?;
        let config = Arc::new(config);
        let settings = config.settings.clone();
        log::begin(&settings);
        if config.additions.envoy.wants_values {
            info!("detailed_metric and value_to_metric have no effect: metrics are by limit");
        }
        let tls = settings.tls().as_ref().map(TlsFiles::load).transpose()?.map(Arc::new);
        let proxy = settings.proxy.as_ref().map(|proxy| Proxy::new(proxy.runtime())).transpose()?;
        let proxy = proxy.map(Arc::new);
        let snapshot = settings.snapshot.as_ref().map(SnapshotFile::claim).transpose()?;
        let (token, generated) = match settings.token.clone() {
            Some(token) => (token, None),
            None => Token::generate().map(|token| (token.clone(), Some(token)))?,
        };
        let shared = match &settings.store {
            Some(store) => Some(shared_store::connect(store).await?),
            None => None,
        };
        let simple = Banner::simple_limit(&policy);
        let (app, snapshot) = load(&config, policy, &token, snapshot, shared.clone()).await?;
        if let Some(store) = &shared {
            shared_store::join(store).await?;
        }
        let app = Arc::new(app);
        if shared.is_some() {
            // Before anyone is let in who is banned or blocked elsewhere.
            let _ = timeout(FIRST_EDITS, app.gate().follow(&mut 0)).await;
        }
        if let Some(proxy) = &proxy {
            app.live().show_proxy(Arc::clone(proxy));
        }
        let bound = bind(protocol::all(&app, &settings, proxy.clone()))?;
        register(&app, &bound);
        let snapshotter = snapshot.map(|file| {
            let metrics = SnapshotMetrics::new(&app, settings.snapshot_interval);
            Snapshotter::new(file, Arc::clone(&app), metrics)
        });
        let protocols = || bound.iter().map(|bound| &*bound.protocol);
        let max_connections = raise_nofile_limit(settings.max_connections, protocols());
        let banner = Banner::new(&source, &config, simple, &bound, generated.as_ref())?;
        let saving = snapshotter.clone().map(|own| own.run(settings.snapshot_interval));
        let mut background: Vec<_> = protocols()
            .filter_map(Protocol::background)
            .map(|run| tokio::spawn(run).abort_handle())
            .collect();
        let stop = channel::Sender::new(false);
        let listeners = listen(bound, max_connections, tls.as_ref(), &stop)?;
        app.readiness().start();
        banner.print();
        let began = settings.clone();
        let (own, seen) = (Arc::clone(&app), config.fingerprint);
        let reloader = Arc::new(Reloader::new(source, began, token, own, (tls, proxy), seen));
        background.push(tokio::spawn(reload::watch(Arc::clone(&reloader))).abort_handle());
        let enforcer = Arc::clone(app.enforcer());
        background.push(tokio::spawn(async move { enforcer.follow().await }).abort_handle());
        background.push(tokio::spawn(Live::run(Arc::clone(&app))).abort_handle());
        background.extend(saving.map(|saving| tokio::spawn(saving).abort_handle()));
        info!(version = env!("CARGO_PKG_VERSION"), "started");
        let (lame_duck, drain) = (settings.shutdown_delay, settings.shutdown_timeout);
        Ok(Self {
            app,
            listeners,
            stop,
            background,
            snapshotter,
            reloader,
            shared,
            lame_duck,
            drain,
        })
    }

    pub(super) async fn reload(&self) {
        reload::in_background(&self.reloader).await;
    }

    /// Shuts down gracefully: answers what has been received, and saves a snapshot. In a lame-duck
    /// period before, clients are asked to connect elsewhere: otherwise requests would be cut off.
    pub(super) async fn stop(self, is_lame_duck: bool) -> Result<(), Box<dyn Error>> {
        self.app.readiness().drain();
        if is_lame_duck {
            info!(time = ?self.lame_duck, "lame duck: asking clients to connect elsewhere");
            sleep(self.lame_duck).await;
        }
        info!("shutting down: answering received requests");
        self.background.iter().for_each(AbortHandle::abort);
        self.stop.send_replace(true);
        drain(self.listeners, self.drain).await;
        // Nothing is spent any more.
        if let Some(store) = self.shared {
            store.shutdown().await;
        }
        match self.snapshotter {
            Some(snapshotter) => Ok(snapshotter.save().await?),
            None => Ok(()),
        }
    }
}

/// Restores the snapshot on a blocking thread: a large one takes seconds.
async fn load(
    config: &Arc<Config>,
    policy: Policy,
    token: &Token,
    snapshot: Option<SnapshotFile>,
    shared: Option<Arc<SharedStore>>,
) -> Result<(App, Option<SnapshotFile>), Box<dyn Error>> {
    let (config, token) = (Arc::clone(config), token.clone());
    let load = move || {
        let app = state::app(&config, policy, &token, snapshot.as_ref(), shared);
        // The error is not `Send`; its text is.
        app.map(|app| (app, snapshot)).map_err(|error| error.to_string())
    };
    Ok(spawn_blocking(load).await??)
}

fn bind(protocols: Vec<(Arc<dyn Protocol>, Listen)>) -> Result<Vec<Bound>, Box<dyn Error>> {
    let mut bound = Vec::new();
    for (protocol, listen) in protocols {
        if let Listen::At(address) = listen {
            let socket = spillgate_net::bind(address, protocol.flag())?;
            bound.push(Bound { protocol, socket });
        }
    }
    Ok(bound)
}

fn register(app: &App, bound: &[Bound]) {
    let protocols = || bound.iter().map(|bound| &*bound.protocol);
    app.register(|registry| {
        let own = registry.sub_registry_with_prefix("spillgate");
        own.register_collector(Box::new(ConnectionMetrics::new(protocols())));
        protocols().for_each(|protocol| protocol.register(own));
    });
}

fn listen(
    bound: Vec<Bound>,
    max_connections: usize,
    tls: Option<&Arc<Tls>>,
    stop: &channel::Sender<bool>,
) -> io::Result<Vec<JoinHandle<OpenConnections>>> {
    let is_per_core = |protocol: &dyn Protocol| protocol.threads() == Threads::PerCore;
    let has_workers = bound.iter().any(|bound| is_per_core(&*bound.protocol));
    let workers = if has_workers { Some(Arc::new(Workers::start()?)) } else { None };
    let listener = |Bound { protocol, socket }| {
        let workers = workers.clone().filter(|_| is_per_core(&*protocol));
        Listener::new(socket, protocol, max_connections, stop.subscribe())
            .tls(tls.cloned())
            .workers(workers)
    };
    Ok(bound.into_iter().map(|bound| tokio::spawn(listener(bound).run())).collect())
}
