//! A running server: what it is made of, how it is told to change, and how it ends.

mod banner;
mod conversation;
mod descriptors;
mod drain;
mod listener;
mod metrics;
mod reload;
mod running;
mod saver;
mod seldom;
mod signals;
mod state;
mod watch;

use std::error::Error;

use tracing::info;

use self::running::Running;
use self::signals::{Signal, Signals};
use crate::config::Source;

/// Serves as the source says, until it is told to stop.
#[tokio::main]
pub(crate) async fn run(source: Source) -> Result<(), Box<dyn Error>> {
    let mut signals = Signals::new()?;
    let server = Running::start(source).await?;
    while signals.next().await == Signal::Reload {
        server.reload().await;
    }
    info!("stopping: answering what has been received");
    server.stop(&mut signals).await?;
    info!("stopped");
    Ok(())
}
