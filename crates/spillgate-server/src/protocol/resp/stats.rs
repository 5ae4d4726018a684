use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spillgate_net::{ConnectionCount, Connections};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What all connections have done so far.
        #[derive(Debug, Default)]
        pub struct RespStats {
            connections: Arc<ConnectionCount>,
            $(pub(super) $name: AtomicU64,)*
        }

        /// [`RespStats`] at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            /// Connections accepted.
            pub accepted: u64,
            /// Connections open now.
            pub open: u64,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl RespStats {
            /// The counts. While connections are busy, they are of slightly different moments.
            pub fn counts(&self) -> Counts {
                let Connections { accepted, open, .. } = self.connections.read();
                Counts { accepted, open, $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counts! {
    /// Commands received.
    commands,
    /// Calls of `CL.THROTTLE` and `SG.CHECK` that were allowed.
    allowed,
    /// Calls of `CL.THROTTLE` and `SG.CHECK` that were limited.
    limited,
    /// Error replies.
    errors,
    /// Connections closed after a protocol error.
    protocol_errors,
    /// Connections closed because they spoke another protocol, such as HTTP.
    foreign,
    /// Connections closed because the [buffers](super::Endpoint::buffers) of all were used up.
    evicted,
}

/// What one connection has done and not yet reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) commands: u64,
    pub(super) allowed: u64,
    pub(super) limited: u64,
    pub(super) errors: u64,
}

impl RespStats {
    /// Counts connections. A listener does; [`serve`](super::serve) does not.
    pub(crate) fn connections(&self) -> &Arc<ConnectionCount> {
        &self.connections
    }

    /// Adds what a connection has done: once per batch, since all connections share the counts.
    pub(super) fn report(&self, tally: Tally) {
        add(&self.commands, tally.commands);
        add(&self.allowed, tally.allowed);
        add(&self.limited, tally.limited);
        add(&self.errors, tally.errors);
    }
}

/// Relaxed: counts order nothing.
pub(super) fn add(count: &AtomicU64, more: u64) {
    if more > 0 {
        count.fetch_add(more, Ordering::Relaxed);
    }
}
