use std::num::NonZeroU32;
use std::time::Duration;

use spillgate::AlgorithmKind;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Layout};

use super::size::LASTS;

use crate::effective_quota::EffectiveQuota;

/// A bucket that can be leased: its word is a time, and its tokens refill one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    pub(super) algorithm: AnyAlgorithm,
    /// The refill time of one token in nanoseconds: the length of a slot.
    pub(super) interval: u64,
    burst: u64,
}

/// How a node takes from a nearly empty bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// How many tokens to wait for.
    pub(super) batch: u64,
    /// Their refill time, the shortest interval between two takes.
    pub(super) gap: Duration,
}

impl Pace {
    /// True if a node's share refills sooner than a slice should last.
    pub(super) fn is_a_share(&self) -> bool {
        self.gap < LASTS
    }
}

/// A smaller slice would hardly save a call.
const WORTH_LEASING: u64 = 8;

/// A share that refills sooner would need more than a hundred calls per second.
const SHORTEST: Duration = Duration::from_millis(10);

impl Bucket {
    /// The bucket of a quota, if it can be leased.
    ///
    /// Windows and interval buckets refill all at once, so their slices would not melt; slices
    /// would upset the order of a shaper; and what is lost of a quota that never refills is lost
    /// for good.
    pub(super) fn of(effective: &EffectiveQuota) -> Option<Self> {
        let (kind, algorithm) = (effective.terms.kind, effective.algorithm);
        let is_line = matches!(kind, AlgorithmKind::TokenBucket | AlgorithmKind::LeakyBucket);
        match algorithm.layout() {
            Layout::Bucket { interval, refills: true, .. } if is_line => {
                Some(Self { algorithm, interval, burst: algorithm.limit() })
            }
            _ => None,
        }
    }

    /// The most that one of `nodes` may hold: all together hold at most half the burst, so that new
    /// demand finds the other half. `None` if that is too little to be worth it.
    pub(super) fn most_held(&self, nodes: NonZeroU32) -> Option<u64> {
        let share = self.burst / 2 / u64::from(nodes.get());
        // Of the share before rounding: the bound on calls must hold.
        let refilled = self.span(self.burst) / 2 / u64::from(nodes.get());
        let is_worth_it = share >= WORTH_LEASING && u128::from(refilled) >= SHORTEST.as_nanos();
        is_worth_it.then_some(share)
    }

    /// How one of `nodes` takes from a nearly empty bucket: a share at a time if it refills sooner
    /// than a slice should last, or else what refills in that time.
    pub(super) fn pace(&self, nodes: NonZeroU32) -> Pace {
        let share = self.burst / 2 / u64::from(nodes.get());
        let gap = LASTS.min(Duration::from_nanos(self.span(share)));
        Pace { batch: (gap.as_nanos() as u64 / self.interval).max(1), gap }
    }

    /// So many tokens, but not so many that the bucket would overflow while waiting for them.
    pub(super) fn within_reach(&self, tokens: u64) -> u64 {
        tokens.min(self.burst / 4 * 3)
    }

    /// When a bucket with this word has so many tokens.
    pub(super) fn has_at(&self, word: u64, tokens: u64) -> u64 {
        word.saturating_add(self.span(tokens)).saturating_sub(self.span(self.burst))
    }

    /// The word of a bucket that has so many tokens at this moment.
    pub(super) fn word_at(&self, moment: u64, tokens: u64) -> u64 {
        moment.saturating_add(self.span(self.burst).saturating_sub(self.span(tokens)))
    }

    /// The length of so many slots. Saturates.
    pub(super) fn span(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Terms;

    fn bucket(kind: AlgorithmKind, quota: &str) -> Option<Bucket> {
        let terms = Terms::new(kind, quota.parse().unwrap());
        EffectiveQuota::of(terms).ok().and_then(|effective| Bucket::of(&effective))
    }

    #[test]
    fn token_buckets_and_meters_are_leased_and_nothing_else() {
        let leased = |kind: &AlgorithmKind| bucket(*kind, "100/s").is_some();
        let kinds: Vec<_> = AlgorithmKind::ALL.into_iter().filter(leased).collect();
        assert_eq!(kinds, [AlgorithmKind::TokenBucket, AlgorithmKind::LeakyBucket]);
        assert!(bucket(AlgorithmKind::TokenBucket, "burst 1000").is_none());
    }

    #[test]
    fn all_nodes_together_hold_at_most_half_the_burst_and_small_quotas_are_not_leased() {
        let bucket = bucket(AlgorithmKind::TokenBucket, "10/s burst 1000").unwrap();
        for nodes in 1..=1000 {
            let share = bucket.most_held(NonZeroU32::new(nodes).unwrap());
            assert_eq!(share.is_some(), nodes <= 62, "{nodes} nodes");
            assert!(share.unwrap_or(0) * u64::from(nodes) <= 500);
        }
    }

    #[test]
    fn quotas_that_would_need_more_than_a_hundred_calls_a_second_are_not_leased() {
        let is_leased = |quota, nodes| {
            let bucket = bucket(AlgorithmKind::TokenBucket, quota).unwrap();
            bucket.most_held(NonZeroU32::new(nodes).unwrap()).is_some()
        };
        assert!(is_leased("1000/s burst 50", 1));
        assert!(is_leased("1000/s burst 50", 2));
        assert!(!is_leased("1000/s burst 50", 3), "120 calls a second");
        assert!(is_leased("100_000/s burst 2000", 1));
        assert!(!is_leased("125_000/s burst 2000", 1));
    }

    #[test]
    fn a_batch_is_what_is_refilled_in_a_tenth_of_a_second_or_a_share() {
        let pace = |quota, nodes| {
            let bucket = bucket(AlgorithmKind::TokenBucket, quota).unwrap();
            bucket.pace(NonZeroU32::new(nodes).unwrap())
        };
        let of = |batch, millis| Pace { batch, gap: Duration::from_millis(millis) };
        assert_eq!(pace("1000/s burst 2000", 4), of(100, 100));
        assert_eq!(pace("1000/s burst 50", 1), of(25, 25));
        assert_eq!(pace("1/s burst 1000", 8), of(1, 100));
    }
}
