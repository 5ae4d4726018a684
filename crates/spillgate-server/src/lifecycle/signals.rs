use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// What the system or a person tells a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGHUP.
    Reload,
    /// SIGTERM: others may still send clients here.
    Terminate,
    /// Control-C: somebody waits for the end.
    Interrupt,
}

/// Waits for signals. From its making on, none of them ends the process by itself.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Stream,
    interrupt: Stream,
    hangup: Stream,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.hangup.recv() => Signal::Reload,
        }
    }

    /// Waits for the word to stop. One to reload is kept for later.
    pub(super) async fn told_to_stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
