use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;
use std::time::Duration;

use spillgate::Timestamp;
use spillgate::algorithm::Word;

use crate::Name;
use crate::backend::{BackendError, Exchange};
use crate::clock_sample::ClockSample;
use crate::effective_quota::EffectiveQuota;

/// What leases need of the store: Redis to take from, and what the node knows.
pub(crate) trait LeaseSource: fmt::Debug + Send + Sync + 'static {
    /// All that is needed to ask about one caller under one limit, also later.
    type Caller: Named + Clone + fmt::Debug + Send + Sync + 'static;

    /// The time by this node's clock.
    fn local(&self) -> Timestamp;

    /// How many nodes there are; `None` until it is known.
    fn nodes(&self) -> Option<NonZeroU32>;

    /// For how long Redis keeps a state after nothing is spent any more.
    fn margin(&self) -> Duration;

    /// Takes up to `most`, but not less than `least`, of a bucket that is counted by `wanted`.
    ///
    /// If the caller turns out to be counted otherwise, as after an override at run time,
    /// nothing is taken, and the answer is how.
    fn take(
        &self,
        caller: &Self::Caller,
        wanted: &EffectiveQuota,
        least: u64,
        most: u64,
    ) -> impl Future<Output = Result<Taken, BackendError>> + Send;

    /// Puts a state in place of another, if that is still the one there.
    fn exchange(
        &self,
        exchange: &Exchange,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send;
}

/// A caller as Redis knows it.
pub(crate) trait Named {
    /// Its name.
    fn name(&self) -> Name;
}

/// What Redis answered to a take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// When.
    pub(crate) sample: ClockSample,
    /// What the caller is counted by.
    pub(crate) effective: EffectiveQuota,
    /// The word that was there.
    pub(crate) word: Word,
    /// Whether anything was taken.
    pub(crate) is_granted: bool,
}
