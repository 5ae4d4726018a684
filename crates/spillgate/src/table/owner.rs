//! Whose word is in a slot, and what it is counted by.

use std::time::Duration;

use super::Fingerprint;
use super::update::By;
use crate::Quota;
use crate::algorithm::{AnyAlgorithm, TokenBucket};

/// A caller, and in the bits that its fingerprint leaves free what its word is counted by: the
/// table's own rule, that of a tier, or a quota that came with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(u64);

/// What counts the word of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedBy {
    /// The rule of a tier: zero is the table's own.
    Tier(usize),
    /// A quota of this class that came with a call.
    Call(Class),
}

/// Quotas that come with calls and have about the same burst, as a slot remembers it: the even part
/// is the power of two of the nanoseconds in which all of it refills, in steps of four, and one more
/// says that it is more than one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class(u8);

/// The bits of a fingerprint that come from the key.
const KEY_BITS: u32 = u64::BITS - TAG_BITS;

/// The others.
pub(super) const TAG_BITS: u32 = 7;

/// There are so many numbers of tiers, and as many classes.
const TIERS: usize = 1 << (TAG_BITS - 1);

/// There is no room for more tiers.
pub(crate) const MOST_TIERS: usize = TIERS - 1;

impl Owner {
    #[inline(always)]
    pub(super) fn new(caller: Fingerprint, by: By<'_>) -> Self {
        let number = match by {
            By::Base => return Self(caller.0),
            By::Tier(index) => index + 1,
            By::Call(bucket) => TIERS | Class::of(bucket).number(),
        };
        Self(caller.0 | (number as u64) << KEY_BITS)
    }

    /// The owner of a slot.
    #[inline(always)]
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline(always)]
    pub(super) const fn to_bits(self) -> u64 {
        self.0
    }

    /// True for an empty slot.
    pub(super) const fn is_nobody(self) -> bool {
        self.0 == 0
    }

    /// True if both are the same caller.
    #[inline(always)]
    pub(super) const fn is_caller_of(self, other: Self) -> bool {
        (self.0 ^ other.0) << TAG_BITS == 0
    }

    /// True if the word is counted by a quota that came with a call, of no larger burst than this
    /// one's: then it stays so.
    #[inline(always)]
    pub(super) const fn stays_under(self, bucket: &TokenBucket) -> bool {
        let (_, span) = bucket.times();
        // The even part of the class is in the lower bits of the number.
        let least = self.0 >> KEY_BITS & (TIERS as u64 - 2);
        (self.0 as i64) < 0 && span >> least != 0
    }

    /// True if both are counted by quotas that came with calls, but not of one class.
    pub(super) fn is_of_another_class(self, other: Self) -> bool {
        let class = |owner: Self| match owner.counted_by() {
            CountedBy::Call(class) => Some(class),
            CountedBy::Tier(_) => None,
        };
        class(self).zip(class(other)).is_some_and(|(one, other)| one != other)
    }

    pub(super) const fn caller(self) -> Fingerprint {
        Fingerprint::from_bits(self.0)
    }

    #[inline]
    pub(super) const fn counted_by(self) -> CountedBy {
        match (self.0 >> KEY_BITS) as usize {
            tier @ ..TIERS => CountedBy::Tier(tier),
            number => CountedBy::Call(Class((number - TIERS) as u8)),
        }
    }
}

impl Class {
    fn of(bucket: &TokenBucket) -> Self {
        let (interval, span) = bucket.times();
        Self((span.max(1).ilog2() & !1) as u8 | u8::from(span > interval))
    }

    /// All that there are: no burst takes 2⁶² nanoseconds.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..62).map(Self)
    }

    pub(crate) fn number(self) -> usize {
        self.0.into()
    }

    /// A quota of the class.
    pub(crate) fn quota(self) -> Option<Quota> {
        let (interval, span) = self.least().times();
        Quota::per(span / interval, Duration::from_nanos(span)).build().ok()
    }

    /// The least bucket of the class. No bucket of it is exhausted while less is spent than what
    /// exhausts this one.
    pub(crate) const fn least(self) -> TokenBucket {
        let span = 1 << (self.0 & !1);
        let interval = if self.0 & 1 == 1 && span > 1 { span / 2 } else { span };
        TokenBucket::from_raw([interval, span, 0], 0, true)
    }

    /// The same for any class.
    pub(super) fn rule(self) -> &'static AnyAlgorithm {
        static RULES: [AnyAlgorithm; TIERS] = {
            let mut rules = [AnyAlgorithm::TokenBucket(Class(0).least()); TIERS];
            let mut class = 1;
            while class < TIERS {
                rules[class] = AnyAlgorithm::TokenBucket(Class(class as u8).least());
                class += 1;
            }
            rules
        };
        &RULES[usize::from(self.0) % TIERS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;

    #[test]
    fn a_class_has_a_quota_that_is_of_it() {
        // Nothing less than two nanoseconds can be divided.
        for class in Class::all().filter(|class| class.0 != 1) {
            let quota = class.quota().unwrap_or_else(|| panic!("{class:?} has a quota"));
            assert_eq!(quota.to_string().parse(), Ok(quota), "{class:?}");
            assert_eq!(Class::of(&TokenBucket::new(&quota).unwrap()), class, "{quota}");
        }
    }

    #[test]
    fn no_bucket_is_exhausted_before_the_least_of_its_class() {
        for quota in ["1/s", "2/s", "3/s burst 1", "10/s burst 100", "7/day", "1/day burst 1000"] {
            let bucket = TokenBucket::new(&quota.parse().unwrap()).unwrap();
            let least = Class::of(&bucket).least();
            assert!(least.exhausted_from() <= bucket.exhausted_from(), "{quota}");
            let (_, span) = bucket.times();
            assert!((least.times().1..4 * least.times().1).contains(&span), "{quota}");
        }
    }
}
