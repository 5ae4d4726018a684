use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::algorithm::Word;

use crate::Name;
use crate::backend::{Exchange, Result};
use crate::clock_sample::ClockSample;
use crate::effective_quota::EffectiveQuota;

/// What leases need of the store.
pub(crate) trait LeaseSource: fmt::Debug + Send + Sync + 'static {
    /// A caller under one limit.
    type Caller: Named + Clone + fmt::Debug + Send + Sync + 'static;

    /// This node's time.
    fn local(&self) -> Timestamp;

    /// The number of nodes; `None` until known.
    fn nodes(&self) -> Option<NonZeroU32>;

    /// How long Redis keeps a state after nothing is spent any more.
    fn margin(&self) -> Duration;

    /// Takes between `least` and `most` of a bucket with the quota `wanted`.
    ///
    /// If the caller turns out to have another quota, such as an override, nothing is taken, and
    /// that quota is returned.
    fn take(
        self: &Arc<Self>,
        caller: &Self::Caller,
        wanted: &EffectiveQuota,
        least: u64,
        most: u64,
    ) -> impl Future<Output = Result<Taken>> + Send;

    /// The word of a caller, and when it was read; `None` if it has another quota.
    fn look(
        &self,
        caller: &Self::Caller,
        wanted: &EffectiveQuota,
    ) -> impl Future<Output = Result<Option<(Word, Timestamp)>>> + Send;

    /// Replaces a state if the expected one is still there.
    fn exchange(&self, exchange: &Exchange) -> impl Future<Output = Result<bool>> + Send;
}

/// A caller with its name in Redis.
pub(crate) trait Named {
    fn name(&self) -> Name;
}

/// The reply to a take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// When.
    pub(crate) sample: ClockSample,
    /// The quota of the caller.
    pub(crate) effective: EffectiveQuota,
    /// The word before.
    pub(crate) word: Word,
    /// Whether anything was taken.
    pub(crate) is_granted: bool,
    /// True if the caller's quota has moved, and its word does not tell all that was spent: what is
    /// not spent of a slice could not be given back.
    pub(crate) is_moving: bool,
}
