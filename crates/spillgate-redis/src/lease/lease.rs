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
    /// What the policy counts the caller by, in its tier.
    asked: EffectiveQuota,
    /// What Redis counts it by, as far as is known.
    pub(super) effective: EffectiveQuota,
    pub(super) bucket: Option<Bucket>,
    pub(super) held: Held,
    pub(super) known: Option<BucketWord>,
    pub(super) size: Size,
    /// When it began, by this node's clock.
    pub(super) began: Timestamp,
    /// When the last call came.
    used: Timestamp,
    /// Nothing is taken ahead before this moment.
    pub(super) quiet_until: Timestamp,
    /// Nothing that is idle is given back before this moment.
    pub(super) back_after: Timestamp,
    pub(super) pending: Option<PendingTake>,
    /// What calls cost that wait for the take under way.
    pub(super) waiting: u64,
    /// What those cost that waited for the last one, and have not looked again yet.
    pub(super) woken: u64,
    /// What all of them cost that waited for the last one which a call was in need of.
    pub(super) waited: u64,
}

/// What a node can answer by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spent {
    /// The cost was spent out of a slice.
    Allowed(Decision),
    /// Redis has said within the last second that there is too little, and a batch has
    /// not been refilled since.
    Denied(Decision),
    /// Neither is known: Redis has to be asked.
    Empty,
}

impl<C> Lease<C> {
    /// A lease of which nothing was taken yet.
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
            back_after: local,
            pending: None,
            waiting: 0,
            woken: 0,
            waited: 0,
        }
    }

    /// Begins anew by what Redis turned out to count by.
    pub(super) fn adopt(&mut self, effective: EffectiveQuota, local: Timestamp)
    where
        C: Clone,
    {
        let asked = self.asked;
        *self = Self { asked, ..Self::new(self.caller.clone(), effective, local) };
    }

    /// True if the lease is by what the policy counts the caller by now. Tiers have the same
    /// terms, but not slots of the same length.
    #[inline]
    pub(super) fn is_of(&self, asked: &EffectiveQuota) -> bool {
        self.asked.is_like(asked)
    }

    /// Counts a call, so that what is taken follows demand.
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

    /// What [`spend`](Self::spend) would answer, without spending.
    pub(super) fn peek(&self, cost: u64, local: Timestamp) -> Option<Decision> {
        let held = self.held.peek(self.bucket.as_ref()?, cost, local);
        held.or_else(|| self.denial(cost, local))
    }

    /// Denies a call by what Redis said last.
    fn denial(&self, cost: u64, local: Timestamp) -> Option<Decision> {
        let (bucket, known) = (self.bucket.as_ref()?, self.known.as_ref()?);
        known.denial(bucket, cost, local, self.pending().is_some())
    }

    /// Counts a call that waits for the take under way.
    pub(super) fn wait(&mut self, cost: u64) {
        self.waiting = self.waiting.saturating_add(cost);
    }

    /// Counts a call that has waited, and looks again.
    pub(super) fn wake(&mut self, cost: u64) {
        self.woken = self.woken.saturating_sub(cost);
    }

    /// Takes back as much of a cost, if it is the last that was spent of a slice.
    pub(super) fn undo(&mut self, spent: &SpendRecord, unused: u64) -> bool {
        self.bucket.is_some_and(|bucket| self.held.undo(&bucket, spent, unused))
    }

    /// Believes Redis's word no more, since something was given back to it.
    pub(super) fn unlearn(&mut self) {
        self.known.iter_mut().for_each(BucketWord::unlearn);
    }

    /// The take that is under way.
    pub(super) fn pending(&self) -> Option<&PendingTake> {
        self.pending.as_ref().filter(|pending| pending.is_under_way())
    }

    /// How long no call has come; nothing while a take is under way.
    pub(super) fn idle(&self, local: Timestamp) -> Duration {
        if self.pending().is_some() { Duration::ZERO } else { local.since(self.used) }
    }
}
