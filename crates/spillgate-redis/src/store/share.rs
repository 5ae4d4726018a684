use std::num::NonZeroU32;
use std::time::Duration;

use spillgate::algorithm::Algorithm;
use spillgate::{AlgorithmKind, Quota, Start, Timestamp};
use spillgate_policy::store::LimitSpec;

/// The limit that one of `nodes` applies on its own during an outage.
pub(super) fn share_of_limit(limit: &LimitSpec, nodes: NonZeroU32) -> LimitSpec {
    let mut share = limit.clone();
    if limit.is_by_call {
        return share;
    }
    for own in &mut share.overrides {
        own.quota = share_of(limit.algorithm, own.quota, nodes);
    }
    let tiers = share.tiers.iter_mut().map(|(_, quota)| quota);
    for quota in [&mut share.quota].into_iter().chain(tiers) {
        *quota = share_of(limit.algorithm, *quota, nodes);
    }
    share.max_debt = share.max_debt.map(|max_debt| max_debt.min(deepest(&share)));
    share
}

/// The deepest debt that words of a limit can hold, in every tier.
fn deepest(limit: &LimitSpec) -> u64 {
    let quotas = std::iter::once(&limit.quota).chain(limit.tiers.iter().map(|(_, quota)| quota));
    let algorithm = |quota| limit.algorithm.with_quota(quota, Start::Full, Timestamp::ZERO).ok();
    let debts = quotas.filter_map(algorithm).map(|it| it.deepest() - it.limit());
    debts.min().unwrap_or(0)
}

/// A quota divided by the number of nodes, but at least one token: with more nodes than tokens, all
/// together may spend more at once than the quota.
pub(super) fn share_of(kind: AlgorithmKind, quota: Quota, nodes: NonZeroU32) -> Quota {
    let nodes = u64::from(nodes.get());
    let burst = (quota.burst() / nodes).max(1);
    let share = match quota.period() {
        None => Quota::once(burst),
        Some(period) => {
            let amount = (quota.amount() / nodes).max(1);
            // A window keeps its length, unless there is less than one token per node.
            let stays = quota.amount() >= nodes && !is_continuous(kind);
            let period = if stays { period } else { stretched(period, amount * nodes, &quota) };
            Quota::per(amount, period).burst(burst)
        }
    };
    // Fails only for bursts that take more than a century to refill.
    share.build().unwrap_or(quota)
}

/// True if tokens refill one by one, so that only the rate matters.
fn is_continuous(kind: AlgorithmKind) -> bool {
    use AlgorithmKind as Kind;
    matches!(kind, Kind::TokenBucket | Kind::LeakyBucket | Kind::LeakyShaper)
}

/// The time in which `amount` refills at the rate of a quota.
fn stretched(period: Duration, amount: u64, quota: &Quota) -> Duration {
    let nanos = period.as_nanos() * u128::from(amount);
    let nanos = nanos.div_ceil(u128::from(quota.amount()));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(kind: AlgorithmKind, quota: &str, nodes: u32) -> String {
        let nodes = NonZeroU32::new(nodes).unwrap();
        share_of(kind, quota.parse().unwrap(), nodes).to_string()
    }

    #[test]
    fn a_bucket_is_divided_in_burst_and_rate() {
        let bucket = |quota, nodes| share(AlgorithmKind::TokenBucket, quota, nodes);
        assert_eq!(bucket("10/s burst 20", 1), "10/s burst 20");
        assert_eq!(bucket("10/s burst 20", 2), "5/s burst 10");
        assert_eq!(bucket("3/s", 2), "1 per 666666667 ns");
        assert_eq!(bucket("2/s burst 3", 10), "1 per 5 s");
        assert_eq!(bucket("burst 7", 2), "burst 3");
        assert_eq!(bucket("burst 7", 9), "burst 1");
    }

    #[test]
    fn a_window_keeps_its_length_as_long_as_there_is_a_token_for_each_node() {
        let window = |quota, nodes| share(AlgorithmKind::FixedWindow, quota, nodes);
        assert_eq!(window("10/min", 3), "3/min");
        assert_eq!(window("2/min", 3), "1 per 90 s");
    }

    proptest! {
        #[test]
        fn all_shares_together_are_never_more_than_the_quota(
            amount in 1_u64..1 << 20,
            period in (1_u64 << 20)..1 << 50,
            burst in 1_u64..1 << 12,
            nodes in 1_u32..10_000,
            kind in proptest::sample::select(&AlgorithmKind::ALL),
        ) {
            let period = Duration::from_nanos(period);
            let burst = if is_continuous(kind) { burst } else { amount };
            let quota = Quota::per(amount, period).burst(burst).build();
            let counts = |quota: &Quota| {
                kind.with_quota(quota, Start::Full, Timestamp::ZERO).is_ok()
            };
            let Some(quota) = quota.ok().filter(counts) else { return Ok(()) };
            let share = share_of(kind, quota, NonZeroU32::new(nodes).unwrap());
            prop_assert!(counts(&share), "{share} of {quota}");
            let rate = |quota: &Quota| {
                (u128::from(quota.amount()), quota.period().unwrap().as_nanos())
            };
            let ((amount, period), (share_amount, share_period)) = (rate(&quota), rate(&share));
            prop_assert!(share_amount * u128::from(nodes) * period <= amount * share_period);
            let all_bursts = share.burst() * u64::from(nodes);
            prop_assert!(all_bursts <= quota.burst() || share.burst() == 1);
        }
    }
}
