use std::time::Duration;

use spillgate::Timestamp;
use spillgate::algorithm::Word;
use tokio::time::sleep;

use super::bucket::Bucket;
use super::bucket_word::mix;
use super::held::Slices;
use super::slice::Slice;
use super::source::{LeaseSource, Named};
use crate::backend::{Exchange, Result};
use crate::effective_quota::EffectiveQuota;
use crate::stats::LeaseCounters;
use crate::{Name, State};

/// Slices that are being given back.
#[derive(Debug)]
pub(super) struct SliceReturn<C> {
    pub(super) caller: C,
    pub(super) effective: EffectiveQuota,
    pub(super) bucket: Bucket,
    /// What Redis has not taken back yet.
    pub(super) slices: Slices,
    pub(super) lost: Tokens,
    /// When their lease began: not to be confused with a newer one.
    pub(super) of: Timestamp,
}

/// Tokens and parts of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tokens {
    thousandths: u64,
}

/// How often a bucket is looked at that others change at the same time.
const TRIES: u32 = 7;

/// A word is moved back by less than it could be, by up to so many nanoseconds: then it is where no
/// slice ends, and none is taken for the last one. So little is refilled at once.
const ASIDE: u64 = 1 << 20;

impl<C: Named> SliceReturn<C> {
    pub(super) fn name(&self) -> Name {
        self.caller.name()
    }

    /// Gives the last slice back if nothing lies behind it, and the others for as many of the last
    /// slots. What Redis does not take back stays here.
    pub(super) async fn send<S>(&mut self, source: &S, counters: &LeaseCounters)
    where
        S: LeaseSource<Caller = C>,
    {
        if self.send_last(source, counters).await.is_ok() && !self.slices.is_empty() {
            // If it was not sent, it can be sent later.
            let _ = self.send_late(source, counters).await;
        }
    }

    async fn send_last<S>(&mut self, source: &S, counters: &LeaseCounters) -> Result<()>
    where
        S: LeaseSource<Caller = C>,
    {
        let Some(last) = self.slices.last().filter(|last| !last.is_kept()) else { return Ok(()) };
        let exchange = last.give_back(self.name(), self.effective.terms, source.margin());
        let is_back = source.exchange(&exchange).await;
        let span = last.span();
        let is_back = self.unless_unanswered(span, is_back)?;
        if is_back == Some(true) {
            counters.given_back.add(1);
        }
        if is_back != Some(false) {
            self.slices.pop();
        }
        Ok(())
    }

    /// Exchanges what is left for the last slots of the bucket.
    async fn send_late<S>(&mut self, source: &S, counters: &LeaseCounters) -> Result<()>
    where
        S: LeaseSource<Caller = C>,
    {
        for tried in 0..TRIES {
            let Some((word, now)) = source.look(&self.caller, &self.effective).await? else {
                break;
            };
            let mut early = self.slices.clone();
            let late: u64 = early.iter_mut().map(|slice| slice.take_late(&self.bucket, now)).sum();
            let mixed = mix(word, now);
            let aside = 1 + mixed % self.bucket.interval.min(ASIDE);
            if late <= aside {
                self.slices = early;
                return Ok(());
            }
            let Some(exchange) = self.exchange_end(word, now, late - aside, source.margin()) else {
                // The bucket has more than it would have: it was reset.
                self.slices.clear();
                return Ok(());
            };
            let is_back = source.exchange(&exchange).await;
            let is_back = self.unless_unanswered(late, is_back)?;
            if is_back == Some(true) {
                counters.given_back.add(early.len());
                self.lose(self.gone(&early).saturating_sub(late - aside));
            }
            if is_back != Some(false) {
                self.slices = early;
                return Ok(());
            }
            sleep(Duration::from_millis(mixed % (1 << tried))).await;
        }
        self.lose_rest();
        Ok(())
    }

    /// How long the slots are that are not kept.
    fn gone(&self, kept: &Slices) -> u64 {
        let span = |slices: &Slices| slices.iter().map(Slice::span).sum::<u64>();
        span(&self.slices) - span(kept)
    }

    /// Moves a word back by so many nanoseconds; `None` if it is not so far ahead.
    fn exchange_end(
        &self,
        word: Word,
        now: Timestamp,
        back: u64,
        margin: Duration,
    ) -> Option<Exchange> {
        let at = word.to_bits().checked_sub(back).filter(|at| *at >= now.as_nanos())?;
        let state = |word| Some(State::new(self.effective.terms, Word::from_bits(word)));
        let busy = Duration::from_nanos(at - now.as_nanos());
        Some(Exchange {
            name: self.name(),
            old: state(word.to_bits()),
            new: state(at),
            expires: (!self.effective.terms.is_override).then(|| busy + margin),
        })
    }

    /// Loses slots that may have been given back: `None`. If nothing was sent, it is an error.
    fn unless_unanswered(&mut self, span: u64, is_back: Result<bool>) -> Result<Option<bool>> {
        match is_back {
            Ok(is_back) => Ok(Some(is_back)),
            Err(why) if why.is_unmade() => Err(why),
            Err(_) => {
                self.lose(span);
                Ok(None)
            }
        }
    }

    /// Loses what is left.
    pub(super) fn lose_rest(&mut self) {
        self.lose(self.gone(&Slices::new()));
        self.slices.clear();
    }

    /// Loses slots that are so long together.
    fn lose(&mut self, span: u64) {
        let thousandths = u128::from(span) * 1000 / u128::from(self.bucket.interval);
        self.lost.thousandths += thousandths as u64;
    }
}

impl Tokens {
    pub(super) fn whole(tokens: u64) -> Self {
        Self { thousandths: tokens.saturating_mul(1000) }
    }

    pub(super) fn thousandths(self) -> usize {
        usize::try_from(self.thousandths).unwrap_or(usize::MAX)
    }
}
