use std::time::Duration;

use spillgate::algorithm::SpendRecord;
use spillgate::{Decision, Timestamp};

use super::bucket::Bucket;
use super::bucket_word::BucketWord;
use super::held::Held;
use super::single_flight::PendingTake;
use super::size::Size;
use crate::effective_quota::EffectiveQuota;

/// What a node holds and knows of one caller under one limit.
#[derive(Debug)]
pub(super) struct Lease<C> {
    pub(super) caller: C,
    /// The quota by the policy.
    asked: EffectiveQuota,
    /// The quota in Redis, as far as known.
    pub(super) effective: EffectiveQuota,
    pub(super) bucket: Option<Bucket>,
    pub(super) held: Held,
    pub(super) known: Option<BucketWord>,
    pub(super) size: Size,
    /// When it began, by this node's clock.
    pub(super) began: Timestamp,
    /// The last call.
    used: Timestamp,
    /// Nothing is taken ahead before this time.
    pub(super) quiet_until: Timestamp,
    /// Nothing is taken at all before this time.
    pub(super) strict_until: Timestamp,
    pub(super) pending: Option<PendingTake>,
    /// Cost of the calls that wait for the take in flight.
    pub(super) waiting: u64,
    /// Cost of those that waited for the last take and have not looked again.
    pub(super) woken: u64,
    /// Cost of all that waited for the last take made for a call.
    pub(super) waited: u64,
}

/// What a node can decide on its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spent {
    /// Spent out of a slice.
    Allowed(Decision),
    /// Redis had too little within the last second, and a batch has not refilled since.
    Denied(Decision),
    /// Redis must be asked.
    Empty,
}

impl<C> Lease<C> {
    /// An empty lease.
    pub(super) fn new(caller: C, asked: EffectiveQuota, local: Timestamp) -> Self {
        Self {
            caller,
            asked,
            effective: asked,
            bucket: Bucket::of(&asked),
            held: Held::default(),
            known: None,
            size: Size::new(local),
            began: local,
            used: local,
            quiet_until: local,
            strict_until: local,
            pending: None,
            waiting: 0,
            woken: 0,
            waited: 0,
        }
    }

    /// Begins anew with the quota that Redis has.
    pub(super) fn adopt(&mut self, effective: EffectiveQuota, local: Timestamp)
    where
        C: Clone,
    {
        let (asked, mut held) = (self.asked, std::mem::take(&mut self.held));
        if let Some(bucket) = &self.bucket {
            held.lose_all(bucket, local);
        }
        *self = Self { asked, held, ..Self::new(self.caller.clone(), effective, local) };
    }

    /// True if the lease has the quota of the policy. Tiers share terms, but their slots differ in
    /// length.
    #[inline]
    pub(super) fn is_of(&self, asked: &EffectiveQuota) -> bool {
        self.asked.is_like(asked)
    }

    /// Counts a call, so that takes follow demand.
    #[inline]
    pub(super) fn count(&mut self, cost: u64, local: Timestamp) {
        self.size.ask(cost, local);
        self.used = local;
    }

    /// Spends a cost if it can be decided here.
    #[inline]
    pub(super) fn spend(&mut self, cost: u64, local: Timestamp) -> Spent {
        let Some(bucket) = &self.bucket else { return Spent::Empty };
        if let Some(decision) = self.held.spend(bucket, cost, local) {
            return Spent::Allowed(decision);
        }
        self.denial(cost, local).map_or(Spent::Empty, Spent::Denied)
    }

    /// The decision of [`spend`](Self::spend), without spending.
    pub(super) fn peek(&self, cost: u64, local: Timestamp) -> Option<Decision> {
        let held = self.held.peek(self.bucket.as_ref()?, cost, local);
        held.or_else(|| self.denial(cost, local))
    }

    /// Denies a call by the last known word.
    fn denial(&self, cost: u64, local: Timestamp) -> Option<Decision> {
        let (bucket, known) = (self.bucket.as_ref()?, self.known.as_ref()?);
        known.denial(bucket, cost, local, self.pending().is_some())
    }

    /// Counts a call that waits for the take in flight.
    pub(super) fn wait(&mut self, cost: u64) {
        self.waiting = self.waiting.saturating_add(cost);
    }

    /// Counts a call that has waited and looks again.
    pub(super) fn wake(&mut self, cost: u64) {
        self.woken = self.woken.saturating_sub(cost);
    }

    /// Takes back part of a cost, if it was the last spent of a slice.
    pub(super) fn undo(&mut self, spent: &SpendRecord, unused: u64) -> bool {
        self.bucket.is_some_and(|bucket| self.held.undo(&bucket, spent, unused))
    }

    /// Distrusts the last known word, since something was given back.
    pub(super) fn unlearn(&mut self) {
        self.known.iter_mut().for_each(BucketWord::unlearn);
    }

    /// The take in flight.
    pub(super) fn pending(&self) -> Option<&PendingTake> {
        self.pending.as_ref().filter(|pending| pending.is_under_way())
    }

    /// Time since the last call; zero while a take is in flight.
    pub(super) fn idle(&self, local: Timestamp) -> Duration {
        if self.pending().is_some() { Duration::ZERO } else { local.since(self.used) }
    }
}
