//! The time of a bucket whose rate changes.

use super::range::RateRange;
use crate::algorithm::{AnyAlgorithm, TokenBucket, Word};
use crate::seq_cell::{Numbers, SeqCell};
use crate::sync::back_off;
use crate::{Error, Quota, Timestamp};

/// What the words of callers mean, while the quota moves.
///
/// A word counts in *units*, of which a token has a fixed number. Units go by as the quota refills
/// tokens: slower under a low rate than under a high one. So a change of the quota changes how
/// fast they go by from now on, and no word: what a caller has left it keeps, in tokens, up to the
/// new burst. Nobody gains by a change, and none touches the table.
///
/// Under one quota, a word is a straight line of real time, and decisions are those of a token
/// bucket in real time. Time is counted in whole units: in nanoseconds or finer, unless the rate is
/// below a quarter of the highest; then in steps of less than a millionth of a token, up to a
/// highest rate of 4,000 per second (of a thousandth up to a million).
pub(super) struct Course {
    /// How many units a token has.
    unit: u64,
    terms: SeqCell<5>,
}

/// The meaning of words under one quota.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    unit: u64,
    bucket: TokenBucket,
    interval: u64,
    burst: u64,
    /// At this time,
    from: u64,
    /// this many units had gone by.
    gone: u64,
}

/// An empty bucket has a word this far ahead, so that no word is negative. Bursts are below.
const AHEAD: u64 = 1 << 60;

/// A token has at most this many units per nanosecond in which the highest rate refills it, so that
/// units last for 27 years.
const UNITS_PER_NANO: u64 = 4;

/// The same after the highest rate was raised: for more than six years.
const MOST_UNITS_PER_NANO: u64 = 16;

/// Before the first call.
const NOT_BEGUN: u64 = u64::MAX;

impl Course {
    /// Begins with one of the quotas of a range.
    pub(super) fn new(quota: &Quota, range: &RateRange) -> Result<Self, Error> {
        let (longest, shortest) = (interval_of(&range.min()), interval_of(&range.max()));
        let unit = longest.min(shortest.saturating_mul(UNITS_PER_NANO));
        expect_room(unit, range)?;
        let numbers = numbers(TokenBucket::new(quota)?, NOT_BEGUN, 0);
        Ok(Self { unit, terms: SeqCell::new(numbers) })
    }

    /// Checks that words can count the quotas of another range.
    pub(super) fn expect(&self, range: &RateRange) -> Result<(), Error> {
        expect_room(self.unit, range)?;
        let max = range.max();
        if interval_of(&max).saturating_mul(MOST_UNITS_PER_NANO) >= self.unit {
            return Ok(());
        }
        Err(Error::quota(format!(
            "a maximum of \"{max}\" is too far above the one that it was built with; build a new one"
        )))
    }

    #[inline]
    pub(super) fn terms(&self) -> Terms {
        loop {
            let read = |n: Numbers<'_, 5>| {
                let (interval, span) = (n.get(1), n.get(2));
                let bucket = TokenBucket::from_raw([interval, span, 0], n.get(0), true);
                // Torn numbers may be anything.
                let burst = span / interval.max(1);
                Terms { unit: self.unit, bucket, interval, burst, from: n.get(3), gone: n.get(4) }
            };
            match self.terms.read(read) {
                Some(terms) => return terms,
                None => back_off(),
            }
        }
    }

    /// Goes on with another quota from `now` on. Only one thread may do so at a time.
    pub(super) fn bend(&self, quota: &Quota, now: Timestamp) {
        let terms = self.terms();
        let bucket = TokenBucket::new(quota).unwrap_or(terms.bucket);
        if bucket != terms.bucket {
            let from = if terms.from == NOT_BEGUN { 0 } else { terms.from };
            self.terms.write(numbers(bucket, now.as_nanos().max(from), terms.gone_at(now)));
        }
    }

    /// Goes on from `now`, also if time went back. Like [`bend`](Self::bend), only one thread.
    pub(super) fn begin_anew(&self, now: Timestamp) {
        let terms = self.terms();
        self.terms.write(numbers(terms.bucket, now.as_nanos(), terms.gone_at(now)));
    }
}

impl Terms {
    /// The whole units that have gone by.
    #[inline]
    fn gone_at(&self, now: Timestamp) -> u64 {
        // Before the first call, none.
        let elapsed = now.as_nanos().saturating_sub(self.from);
        self.gone.saturating_add(scaled(elapsed, self.unit, self.interval).0)
    }

    /// What is added to units, so that a word above is one of a caller that has spent something.
    #[inline]
    fn shift(&self) -> u64 {
        AHEAD - self.burst * self.unit
    }

    /// The word of a bucket that is full at `now`.
    #[inline]
    fn full_at(&self, now: Timestamp) -> u64 {
        self.gone_at(now).saturating_add(self.shift())
    }

    /// The time by which the table knows idle words.
    #[inline]
    pub(super) fn table_time(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_nanos(self.full_at(now))
    }

    /// The bucket by which the table knows exhausted words.
    #[inline]
    pub(super) fn table_bucket(&self) -> TokenBucket {
        TokenBucket::from_raw([self.unit, self.unit * self.burst, 0], 0, true)
    }

    /// The bucket in real time.
    #[inline]
    pub(super) fn bucket(&self) -> TokenBucket {
        self.bucket
    }

    pub(super) fn burst(&self) -> u64 {
        self.burst
    }

    /// A word in real time: when the bucket is full again.
    #[inline]
    pub(super) fn to_real(self, word: Word) -> Word {
        let units = word.to_bits().saturating_sub(self.shift());
        let ahead = units.saturating_sub(self.gone);
        let (nanos, has_rest) = scaled(ahead, self.interval, self.unit);
        let back = scaled(self.gone.saturating_sub(units), self.interval, self.unit).0;
        let real = self.from.saturating_sub(back).saturating_add(nanos);
        Word::from_bits(real.saturating_add(u64::from(has_rest)))
    }

    /// The word after a call of `cost` that was allowed.
    #[inline]
    pub(super) fn spend(self, word: Word, now: Timestamp, cost: u64) -> Word {
        let base = word.to_bits().max(self.full_at(now));
        Word::from_bits(base.saturating_add(cost.saturating_mul(self.unit)))
    }

    /// The word after `amount` was returned: never more than a full bucket.
    pub(super) fn refund(self, word: Word, now: Timestamp, amount: u64) -> Word {
        let bits = word.to_bits();
        let refunded = bits.saturating_sub(amount.saturating_mul(self.unit));
        Word::from_bits(refunded.max(self.full_at(now).min(bits)))
    }

    /// A word that leaves fewer tokens, in real time.
    #[inline]
    pub(super) fn reserving(self, real: Word, now: Timestamp, tokens: u64) -> Word {
        let base = real.to_bits().max(now.as_nanos());
        Word::from_bits(base.saturating_add(tokens * self.interval))
    }

    /// A time in units as one in nanoseconds, rounded up.
    pub(super) fn nanos(self, units: u64) -> u64 {
        let (nanos, has_rest) = scaled(units, self.interval, self.unit);
        nanos.saturating_add(u64::from(has_rest))
    }
}

/// `number · by / per`, rounded down, and whether there is a rest.
#[inline]
fn scaled(number: u64, by: u64, per: u64) -> (u64, bool) {
    let per = per.max(1);
    match number.checked_mul(by) {
        Some(product) => (product / per, product % per != 0),
        None => {
            let (product, per) = (u128::from(number) * u128::from(by), u128::from(per));
            (u64::try_from(product / per).unwrap_or(u64::MAX), product % per != 0)
        }
    }
}

fn numbers(bucket: TokenBucket, from: u64, gone: u64) -> [u64; 5] {
    let [tag, interval, span, ..] = AnyAlgorithm::from(bucket).to_raw();
    [tag, interval, span, from, gone]
}

fn interval_of(quota: &Quota) -> u64 {
    quota.interval().map_or(1, |interval| interval.as_nanos() as u64)
}

fn expect_room(unit: u64, range: &RateRange) -> Result<(), Error> {
    let most_burst = range.min().burst().max(range.max().burst());
    if unit.checked_mul(most_burst).is_some_and(|units| units < AHEAD) {
        return Ok(());
    }
    Err(Error::quota(format!(
        "a burst of {most_burst} is more than a quota that moves at such a rate can count; use at \
         most {}",
        AHEAD / unit
    )))
}
