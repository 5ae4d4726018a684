use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch as channel;
use tokio::task::{AbortHandle, JoinHandle, spawn_blocking};
use tokio::time::sleep;
use tracing::info;

use super::banner::Banner;
use super::conversation::{Conversation, Protocol};
use super::drain::{Clients, drain};
use super::listener::Listener;
use super::metrics::SnapshotMetrics;
use super::reload::{self, Reloader};
use super::saver::Saver;
use super::seldom::Seldom;
use super::workers::Workers;
use super::{descriptors, shared, state, watch};
use crate::settings::{Config, Listen, Settings, Source, Token};
use crate::snapshot::SnapshotFile;
use crate::tls::Tls;
use crate::{App, SharedStore, log};

/// A server that serves.
#[derive(Debug)]
pub(super) struct Running {
    app: Arc<App>,
    listeners: Vec<JoinHandle<Clients>>,
    /// Tells listeners and connections to stop.
    stop: channel::Sender<bool>,
    /// What happens beside: snapshots now and then, and looking at files.
    beside: Vec<AbortHandle>,
    saver: Option<Saver>,
    reloader: Arc<Reloader>,
    shared: Option<Arc<SharedStore>>,
    lame_duck: Duration,
    drain: Duration,
}

/// A listener that nobody has been accepted from.
pub(super) type Socket = (Protocol, TcpListener);

impl Running {
    /// Puts back what was spent, and begins to listen.
    pub(super) async fn start(source: Source) -> Result<Self, Box<dyn Error>> {
        // What is seen before it is loaded cannot change unseen in between.
        let seen = watch::contents(&source.load()?.settings.files(&source));
        let config = Arc::new(source.load()?);
        let settings = config.settings.clone();
        log::begin(&settings);
        if config.additions.envoy.wants_values {
            info!("detailed_metric and value_to_metric have no effect: metrics are by limit");
        }
        let tls = settings.tls.as_ref().map(Tls::load).transpose()?.map(Arc::new);
        let snapshot = settings.snapshot.as_ref().map(SnapshotFile::claim).transpose()?;
        let (token, generated) = match settings.token.clone() {
            Some(token) => (token, None),
            None => Token::generate().map(|token| (token.clone(), Some(token)))?,
        };
        let shared = match &settings.store {
            Some(store) => Some(shared::connect(store).await?),
            None => None,
        };
        let (mut app, snapshot) = load(&config, &token, snapshot, shared.clone()).await?;
        if let Some(store) = &shared {
            shared::join(store).await?;
        }
        let metrics = snapshot
            .is_some()
            .then(|| SnapshotMetrics::new(app.registry(), settings.snapshot_every));
        let app = Arc::new(app);
        let sockets = bind(&settings).await?;
        // Each client of a proxy has another connection behind it.
        let behind = sockets.iter().filter(|(protocol, _)| *protocol == Protocol::Proxy).count();
        let own = sockets.iter().filter(|(protocol, _)| *protocol != Protocol::Admin).count();
        let places = descriptors::make_room(settings.connections, own + behind);
        let banner = Banner::new(&source, &config, &sockets, generated.as_ref())?;
        let stop = channel::Sender::new(false);
        let listeners = listen(sockets, places, tls.as_ref(), &app, &stop)?;
        app.readiness().start();
        banner.print();
        let saver = snapshot.zip(metrics);
        let saver = saver.map(|(file, metrics)| Saver::new(file, Arc::clone(&app), metrics));
        let reloader =
            Arc::new(Reloader::new(source, settings.clone(), token, Arc::clone(&app), tls, seen));
        let saving = saver.clone().map(|saver| saver.run(settings.snapshot_every));
        let mut beside = vec![tokio::spawn(watch::run(Arc::clone(&reloader))).abort_handle()];
        beside.extend(
            app.proxy()
                .cloned()
                .map(|proxy| tokio::spawn(async move { proxy.tend().await }).abort_handle()),
        );
        beside.extend(saving.map(|saving| tokio::spawn(saving).abort_handle()));
        info!(version = env!("CARGO_PKG_VERSION"), "started");
        let Settings { lame_duck, drain, .. } = settings;
        Ok(Self { app, listeners, stop, beside, saver, reloader, shared, lame_duck, drain })
    }

    pub(super) async fn reload(&self) {
        reload::in_background(&self.reloader).await;
    }

    /// Answers what has been received, and keeps what was spent. A lame duck first goes on for
    /// a while, and tells clients to leave: to hang up on one that does not know would cut off
    /// the request that it is sending.
    pub(super) async fn stop(self, is_lame_duck: bool) -> Result<(), Box<dyn Error>> {
        self.app.readiness().drain();
        if is_lame_duck {
            info!(time = ?self.lame_duck, "stopping: telling clients to leave");
            sleep(self.lame_duck).await;
        }
        info!("stopping: answering what has been received");
        self.beside.iter().for_each(AbortHandle::abort);
        self.stop.send_replace(true);
        drain(self.listeners, self.drain).await;
        // Nobody can spend any more.
        if let Some(store) = self.shared {
            store.shutdown().await;
        }
        match self.saver {
            Some(saver) => Ok(saver.save().await?),
            None => Ok(()),
        }
    }
}

/// Puts back what was spent, on a thread of its own: a large snapshot takes seconds, and
/// signals are heard meanwhile.
async fn load(
    config: &Arc<Config>,
    token: &Token,
    snapshot: Option<SnapshotFile>,
    shared: Option<Arc<SharedStore>>,
) -> Result<(App, Option<SnapshotFile>), Box<dyn Error>> {
    let (config, token) = (Arc::clone(config), token.clone());
    let load = move || {
        let app = state::app(&config, &token, snapshot.as_ref(), shared);
        // An error of any kind cannot leave its thread; its text can.
        app.map(|app| (app, snapshot)).map_err(|error| error.to_string())
    };
    Ok(spawn_blocking(load).await??)
}

async fn bind(settings: &Settings) -> Result<Vec<Socket>, Box<dyn Error>> {
    let mut sockets = Vec::new();
    let listens = [
        (Protocol::Http, settings.http),
        (Protocol::Resp, settings.resp),
        (Protocol::Grpc, settings.grpc),
        (Protocol::Proxy, settings.proxy_listen()),
        (Protocol::Admin, settings.admin),
    ];
    for (protocol, listen) in listens {
        if let Listen::At(address) = listen {
            sockets.push((protocol, Listener::bind(protocol, address).await?));
        }
    }
    Ok(sockets)
}

fn listen(
    sockets: Vec<Socket>,
    places: usize,
    tls: Option<&Arc<Tls>>,
    app: &Arc<App>,
    stop: &channel::Sender<bool>,
) -> io::Result<Vec<JoinHandle<Clients>>> {
    let has_workers = sockets.iter().any(|(protocol, _)| protocol.has_workers());
    let workers = if has_workers { Some(Arc::new(Workers::start()?)) } else { None };
    let listener = |(protocol, socket): Socket| {
        let (app, tls) = (Arc::clone(app), tls.cloned());
        let workers = workers.clone().filter(|_| protocol.has_workers());
        let conversation = Conversation { protocol, app, tls, workers, seldom: Seldom::default() };
        Listener::new(socket, conversation, places, stop.subscribe())
    };
    Ok(sockets.into_iter().map(|socket| tokio::spawn(listener(socket).run())).collect())
}
