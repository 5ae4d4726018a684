//! A running server: what it is made of, how it is told to change, and how it ends.

mod banner;
mod conversation;
mod descriptors;
mod drain;
mod listener;
mod metrics;
mod reload;
mod saver;
mod seldom;
mod signals;
mod state;
mod watch;

use std::error::Error;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch as channel};
use tokio::task::JoinHandle;
use tracing::info;

use self::banner::Banner;
use self::conversation::{Conversation, Protocol};
use self::drain::{Clients, drain};
use self::listener::Listener;
use self::metrics::SnapshotMetrics;
use self::reload::Reloader;
use self::saver::Saver;
use self::seldom::Seldom;
use self::signals::{Signal, Signals};
use crate::config::{Listen, Settings, Source, Token};
use crate::snapshot::SnapshotFile;
use crate::tls::Tls;
use crate::{App, log};

/// Serves as the source says, until it is told to stop.
#[tokio::main]
pub(crate) async fn run(source: Source) -> Result<(), Box<dyn Error>> {
    // What is seen before it is loaded cannot change unseen in between.
    let seen = watch::contents(source.load()?.settings.files(&source)).await;
    let config = source.load()?;
    let settings = config.settings.clone();
    log::begin(&settings);
    let mut signals = Signals::new()?;
    let tls = settings.tls.as_ref().map(Tls::load).transpose()?.map(Arc::new);
    let snapshot = settings.snapshot.as_ref().map(SnapshotFile::claim).transpose()?;
    let (token, is_generated) = match settings.token.clone() {
        Some(token) => (token, false),
        None => (Token::generate()?, true),
    };
    let mut app = state::app(&config, &token, snapshot.as_ref())?;
    let snapshot = snapshot.map(|file| (file, SnapshotMetrics::new(app.registry())));
    let app = Arc::new(app);
    let (stop, stopped) = channel::channel(false);
    let sockets = bind(&settings).await?;
    descriptors::make_room(sockets.len() * settings.connections);
    let banner = Banner::new(&source, &config, &sockets, is_generated.then_some(&token))?;
    let listeners = listen(sockets, &settings, tls.as_ref(), &app, &stopped);
    drop(stopped);
    app.readiness().start();
    banner.print();
    let saver = snapshot.map(|(file, metrics)| Saver::new(file, Arc::clone(&app), metrics));
    let saving = saver.clone().map(|saver| tokio::spawn(saver.run(settings.snapshot_every)));
    let reloader = Arc::new(Reloader::new(source, settings.clone(), token, Arc::clone(&app), tls));
    let watching = tokio::spawn(watch::run(Arc::clone(&reloader), seen));
    info!(version = env!("CARGO_PKG_VERSION"), "started");

    while signals.next().await == Signal::Reload {
        reload::in_background(&reloader).await;
    }
    info!("stopping: answering what has been received");
    watching.abort();
    if let Some(saving) = saving {
        saving.abort();
    }
    app.readiness().drain();
    stop.send_replace(true);
    drain(listeners, settings.drain, &mut signals).await;
    // Nobody can spend any more.
    if let Some(saver) = saver {
        saver.save().await?;
    }
    info!("stopped");
    Ok(())
}

type Socket = (Protocol, tokio::net::TcpListener);

async fn bind(settings: &Settings) -> Result<Vec<Socket>, Box<dyn Error>> {
    let mut sockets = Vec::new();
    for (protocol, listen) in [(Protocol::Http, settings.http), (Protocol::Resp, settings.resp)] {
        if let Listen::At(address) = listen {
            sockets.push((protocol, Listener::bind(protocol, address).await?));
        }
    }
    Ok(sockets)
}

fn listen(
    sockets: Vec<Socket>,
    settings: &Settings,
    tls: Option<&Arc<Tls>>,
    app: &Arc<App>,
    stopped: &channel::Receiver<bool>,
) -> Vec<JoinHandle<Clients>> {
    let places = settings.connections.min(Semaphore::MAX_PERMITS);
    let listener = |(protocol, socket)| {
        let (app, tls) = (Arc::clone(app), tls.cloned());
        let conversation = Conversation { protocol, app, tls, seldom: Seldom::default() };
        let places = Arc::new(Semaphore::new(places));
        Listener { socket, conversation: Arc::new(conversation), places, stopped: stopped.clone() }
    };
    sockets.into_iter().map(|socket| tokio::spawn(listener(socket).run())).collect()
}
