use super::agreement::Agreement;
use crate::LeaseStats;
use crate::counter::Counter;

/// What a store has done so far: who decided about single limits, and what was done
/// besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Decided by the engine.
    pub by_engine: u64,
    /// Denied by a word that was remembered.
    pub by_memory: u64,
    /// Let through undecided, since the engine could not be asked.
    pub outage_open: u64,
    /// Refused undecided, since the engine could not be asked.
    pub outage_closed: u64,
    /// Decided by this node's share, since the engine could not be asked.
    pub outage_local: u64,
    /// How many callers are still to be charged at the engine for what was admitted by shares.
    pub unreported: u64,
    /// Tokens admitted by shares that will not be charged, since there was no room to note it.
    pub forgiven: u64,
    /// Words carried over from other terms.
    pub carried_over: u64,
    /// Words of a time to come, since the engine's clock has gone back, that were cut.
    pub cut: u64,
    /// Charges that were taken back, since another limit denied the call.
    pub undone: u64,
    /// Charges that could not be, since somebody had spent meanwhile.
    pub kept_charges: u64,
    /// What was decided by leases, and what became of these.
    pub leases: LeaseStats,
    /// How many nodes there are, as far as this one knows: zero if it does not.
    pub nodes: u32,
    /// How the other nodes agree with this one.
    pub agreement: Agreement,
}

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) by_engine: Counter,
    pub(super) by_memory: Counter,
    pub(super) outage_open: Counter,
    pub(super) outage_closed: Counter,
    pub(super) outage_local: Counter,
    pub(super) carried_over: Counter,
    pub(super) cut: Counter,
    pub(super) undone: Counter,
    pub(super) kept_charges: Counter,
}

impl Counters {
    pub(super) fn stats(&self, leases: LeaseStats, nodes: u32) -> Stats {
        Stats {
            by_engine: self.by_engine.value(),
            by_memory: self.by_memory.value(),
            outage_open: self.outage_open.value(),
            outage_closed: self.outage_closed.value(),
            outage_local: self.outage_local.value(),
            unreported: 0,
            forgiven: 0,
            carried_over: self.carried_over.value(),
            cut: self.cut.value(),
            undone: self.undone.value(),
            kept_charges: self.kept_charges.value(),
            leases,
            nodes,
            agreement: Agreement::default(),
        }
    }
}
