use std::num::NonZeroU32;

use tollgate::AlgorithmKind;
use tollgate::algorithm::{Algorithm, AnyAlgorithm, Layout};

use crate::counted::Counted;

/// A bucket that slices can be taken of: one whose word is a time and whose tokens are
/// refilled one by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    pub(super) algorithm: AnyAlgorithm,
    /// How long one token takes to be refilled, in nanoseconds: the length of a slot.
    pub(super) interval: u64,
    burst: u64,
}

/// Below this a slice would hardly save a call.
const WORTH_LEASING: u64 = 8;

impl Bucket {
    /// The bucket that counts so, if it is one to take slices of.
    ///
    /// Windows and interval buckets are refilled all at once, so nothing in them melts; a
    /// shaper's places are in an order that slices would upset; and what is lost of a quota
    /// that is never refilled would be lost for good.
    pub(super) fn of(counted: &Counted) -> Option<Self> {
        let (kind, algorithm) = (counted.terms.kind, counted.algorithm);
        let is_line = matches!(kind, AlgorithmKind::TokenBucket | AlgorithmKind::LeakyBucket);
        match algorithm.layout() {
            Layout::Bucket { interval, refills: true, .. } if is_line => {
                Some(Self { algorithm, interval, burst: algorithm.limit() })
            }
            _ => None,
        }
    }

    /// The most that one of so many nodes may hold: all of them together hold no more than
    /// half the burst, so that whoever comes with a demand of its own finds the other half.
    /// `None` if that is too little to be worth it.
    pub(super) fn most_held(&self, nodes: NonZeroU32) -> Option<u64> {
        let share = self.burst / 2 / u64::from(nodes.get());
        (share >= WORTH_LEASING).then_some(share)
    }

    /// How long so many slots are. Saturates.
    pub(super) fn span(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Terms;
    use crate::counted::Whose;

    fn bucket(kind: AlgorithmKind, quota: &str) -> Option<Bucket> {
        let terms = Terms::new(kind, quota.parse().unwrap());
        Counted::of(terms, Whose::Limit).ok().and_then(|counted| Bucket::of(&counted))
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
}
