//! Counters of a store and of its leases, and the snapshot of them for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Agreement;

/// What a store has done so far. Decisions are counted per limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Decided by Redis.
    pub by_redis: u64,
    /// Denied by a remembered state, without asking Redis.
    pub by_memory: u64,
    /// Allowed undecided during an outage.
    pub outage_open: u64,
    /// Refused undecided during an outage.
    pub outage_closed: u64,
    /// Decided by this node's share during an outage.
    pub outage_local: u64,
    /// Callers whose spending during an outage is still to be debited in Redis.
    pub unreported: u64,
    /// Tokens spent during an outage that will not be debited, for lack of room to record them.
    pub forgiven: u64,
    /// Tokens to be refunded that were not: more refunds waited for Redis than there is room for,
    /// or one was not answered.
    pub dropped_refunds: u64,
    /// States put under other terms.
    pub carried_over: u64,
    /// States cut because the Redis clock stepped back.
    pub cut: u64,
    /// Spends taken back because another limit denied the call.
    pub undone: u64,
    /// Spends that could not be taken back because somebody had spent meanwhile.
    pub kept_spends: u64,
    /// Leases.
    pub leases: LeaseStats,
    /// Permits of concurrency limits.
    pub permits: PermitStats,
    /// Nodes that share this store, as far as known; zero if unknown.
    pub nodes: u32,
    /// How the configuration of the other nodes compares with this one.
    pub agreement: Agreement,
}

/// What leases have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Callers with a lease.
    pub callers: u64,
    /// Calls allowed out of a slice.
    pub allowed: u64,
    /// Calls denied by the last known state of the bucket.
    pub denied: u64,
    /// Takes sent to Redis.
    pub takes: u64,
    /// Slices whose rest was given back.
    pub given_back: u64,
    /// Slices of which something could not be given back: others had spent after them, or Redis did
    /// not answer.
    pub lost: u64,
    /// Tokens of slices that were neither spent nor given back, apart from those that passed while
    /// the bucket refilled.
    pub lost_tokens: u64,
}

/// What became of the permits of concurrency limits so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermitStats {
    /// Callers whose permits this node holds in Redis.
    pub callers: u64,
    /// Permits in flight on this node.
    pub held: u64,
    /// Permits that expired before they were released: their holders may still run.
    pub expired: u64,
    /// Calls to Redis about permits.
    pub calls: u64,
}

/// A number that only grows. Relaxed throughout: it orders nothing else.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($(#[$doc:meta])* $counters:ident => $stats:ident { $($name:ident),+ }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $counters {
            $(pub(crate) $name: Counter),+
        }

        impl $counters {
            pub(crate) fn stats(&self) -> $stats {
                $stats { $($name: self.$name.value(),)+ ..$stats::default() }
            }
        }
    };
}

counters! {
    /// The counters behind [`Stats`].
    StoreCounters => Stats {
        by_redis, by_memory, outage_open, outage_closed, outage_local, carried_over, cut, undone,
        kept_spends
    }
}

counters! {
    /// The counters behind [`LeaseStats`] that are kept outside of the table's locks.
    LeaseCounters => LeaseStats { takes, given_back, lost }
}
