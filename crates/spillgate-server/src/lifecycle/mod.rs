//! A running server: what it is made of, how it is told to change, and how it ends.

mod banner;
mod metrics;
mod reload;
mod saver;
mod server;
mod shared;
mod signals;
mod state;
mod watch;

use std::error::Error;
use std::process::exit;

use tracing::{info, warn};

use self::server::Server;
pub(crate) use self::shared::{connect, join};
use self::signals::{Signal, Signals};
use crate::settings::Source;

/// Serves as the source says, until it is told to stop.
///
/// Told so while it starts, or for a second time, it ends at once, whatever it is reading
/// or writing: a snapshot is replaced whole or not at all.
#[tokio::main]
pub(crate) async fn run(source: Source) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new()?;
    let server = tokio::select! {
        started = Server::start(source) => started?,
        () = signals.told_to_stop() => {
            info!("told to stop before it has started");
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
        () = signals.told_to_stop() => {
            warn!("told to stop again: ending at once, without a snapshot");
            exit(1);
        }
    }
    info!("stopped");
    Ok(())
}
