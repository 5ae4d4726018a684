//! The lifecycle of a server: start, signals, reload, graceful shutdown.

mod banner;
mod reload;
mod server;
mod shared_store;
mod signals;
mod snapshotter;
mod state;

use std::error::Error;
use std::process::exit;

use tracing::{info, warn};

use self::server::Server;
pub(crate) use self::shared_store::{connect, join};
use self::signals::{Signal, Signals};
use crate::settings::Source;

/// Serves until SIGTERM or SIGINT. During startup, or the second time, these end the process at
/// once: a snapshot is replaced atomically.
#[tokio::main]
pub(crate) async fn run(source: Source) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new()?;
    let server = tokio::select! {
        started = Server::start(source) => started?,
        () = signals.stop_requested() => {
            info!("shutdown requested during startup");
            exit(0);
        }
    };
    let is_lame_duck = loop {
        match signals.next().await {
            Signal::Reload => server.reload().await,
            Signal::Terminate => break true,
            Signal::Interrupt => break false,
        }
    };
    tokio::select! {
        stopped = server.stop(is_lame_duck) => stopped?,
        () = signals.stop_requested() => {
            warn!("second shutdown request: exiting at once, without a snapshot");
            exit(1);
        }
    }
    info!("stopped");
    Ok(())
}
