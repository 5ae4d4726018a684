use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Reload,
    /// SIGTERM: load balancers may still send clients here.
    Terminate,
    /// SIGINT: somebody waits at a terminal.
    Interrupt,
}

/// Waits for signals. Once created, none of them ends the process by default.
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

    /// Ready at SIGTERM or SIGINT. A SIGHUP is kept for later.
    pub(super) async fn stop_requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
