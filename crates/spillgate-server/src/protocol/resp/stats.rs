use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spillgate_net::{ConnectionCount, Connections};

/// What all connections have done so far.
#[derive(Debug, Default)]
pub struct RespStats {
    connections: Arc<ConnectionCount>,
    commands: AtomicU64,
    allowed: AtomicU64,
    limited: AtomicU64,
    errors: AtomicU64,
    protocol_errors: AtomicU64,
    foreign: AtomicU64,
    evicted: AtomicU64,
}

/// [`RespStats`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub open: u64,
    /// Commands, whatever became of them.
    pub commands: u64,
    /// Calls of `CL.THROTTLE` and `SG.CHECK` that were allowed.
    pub allowed: u64,
    /// Calls of `CL.THROTTLE` and `SG.CHECK` that were limited.
    pub limited: u64,
    /// Commands that were answered with an error.
    pub errors: u64,
    /// Connections that ended because they broke the protocol.
    pub protocol_errors: u64,
    /// Connections that were dropped because they spoke another protocol, such as HTTP.
    pub foreign: u64,
    /// Connections that were closed because the [buffers](super::Endpoint::buffers) of all
    /// were used up.
    pub evicted: u64,
}

/// What one connection has done and not yet reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) commands: u64,
    pub(super) allowed: u64,
    pub(super) limited: u64,
    pub(super) errors: u64,
}

// Relaxed throughout: counts order nothing.
impl RespStats {
    /// What has been counted. While connections are busy, the numbers are of slightly
    /// different moments.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Connections { accepted, open, .. } = self.connections.read();
        Counts {
            accepted,
            open,
            commands: read(&self.commands),
            allowed: read(&self.allowed),
            limited: read(&self.limited),
            errors: read(&self.errors),
            protocol_errors: read(&self.protocol_errors),
            foreign: read(&self.foreign),
            evicted: read(&self.evicted),
        }
    }

    /// Counts connections. A listener does; [`serve`](super::serve) does not.
    pub(crate) fn connections(&self) -> &Arc<ConnectionCount> {
        &self.connections
    }

    /// Adds what a connection has done. Once a batch, since all connections share these
    /// counts.
    pub(super) fn report(&self, tally: Tally) {
        add(&self.commands, tally.commands);
        add(&self.allowed, tally.allowed);
        add(&self.limited, tally.limited);
        add(&self.errors, tally.errors);
    }

    pub(super) fn protocol_error(&self) {
        add(&self.protocol_errors, 1);
    }

    pub(super) fn foreign(&self) {
        add(&self.foreign, 1);
    }

    pub(super) fn evicted(&self) {
        add(&self.evicted, 1);
    }
}

fn add(count: &AtomicU64, more: u64) {
    if more > 0 {
        count.fetch_add(more, Ordering::Relaxed);
    }
}
