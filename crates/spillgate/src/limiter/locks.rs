use super::Limiter;
use super::accounts::Stripe;
use super::tiers::Quotas;
use crate::sync::MutexGuard;
use crate::table::Stripes;

/// Every lock of a limiter.
pub(crate) struct LimiterLocks<'l> {
    _changing: MutexGuard<'l, ()>,
    _quotas: Quotas<'l>,
    _accounts: Vec<MutexGuard<'l, Stripe>>,
    _table: Stripes<'l>,
    #[cfg(feature = "tokio")]
    _queues: super::until_ready::HeldQueues<'l>,
}

impl<K: ?Sized, C, S> Limiter<K, C, S> {
    /// Takes every lock, in the order in which calls do.
    pub(crate) fn hold_locks(&self) -> LimiterLocks<'_> {
        LimiterLocks {
            _changing: self.accounts.hold(),
            _quotas: self.tiers.quotas(),
            _accounts: self.accounts.hold_stripes(),
            _table: self.table.hold_stripes(),
            #[cfg(feature = "tokio")]
            _queues: self.queues.hold(),
        }
    }
}
