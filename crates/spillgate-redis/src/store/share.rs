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
    let quotas: Vec<_> = [&mut share.quota].into_iter().chain(tiers).collect();
    let shares = shares_of_tiers(limit.algorithm, &quotas, nodes);
    for (place, quota) in quotas.into_iter().enumerate() {
        let tiered = shares.as_ref().and_then(|shares| shares.get(place));
        *quota = tiered.copied().unwrap_or_else(|| share_of(limit.algorithm, *quota, nodes));
    }
    share.max_debt = share.max_debt.map(|max_debt| max_debt.min(deepest(&share)));
    share
}

/// The deepest debt that words of a limit can hold, in every tier.
fn deepest(limit: &LimitSpec) -> u64 {
    let quotas: Vec<_> =
        [limit.quota].into_iter().chain(limit.tiers.iter().map(|(_, quota)| *quota)).collect();
    let algorithms = limit.algorithm.with_quotas(&quotas, Start::Full, Timestamp::ZERO);
    let debts = algorithms.iter().flatten().map(|it| it.deepest() - it.limit());
    debts.min().unwrap_or(0)
}

/// The shares of tiers that share one word and refill at once, so that all need the same period.
/// Where a tier has less than one token per node, all periods are stretched until it has one.
/// `None` if shares are independent.
fn shares_of_tiers(
    kind: AlgorithmKind,
    quotas: &[&mut Quota],
    nodes: NonZeroU32,
) -> Option<Vec<Quota>> {
    let smallest = quotas.iter().map(|quota| quota.amount()).min()?;
    if quotas.len() == 1 || is_continuous(kind) || smallest == 0 {
        return None;
    }
    let nodes = u64::from(nodes.get());
    let longer = nodes.div_ceil(smallest);
    let share = |quota: &&mut Quota| {
        let period = u64::try_from(quota.period()?.as_nanos()).ok()?.checked_mul(longer)?;
        let part =
            |amount: u64| (u128::from(amount) * u128::from(longer) / u128::from(nodes)) as u64;
        let amount = part(quota.amount()).max(1);
        // A window has no burst; the burst of a bucket is divided.
        let is_bucket = kind == AlgorithmKind::IntervalBucket;
        let burst = if is_bucket { quota.burst() / nodes } else { amount };
        Quota::per(amount, Duration::from_nanos(period)).burst(burst.max(1)).build().ok()
    };
    // Fails only for periods of more than a century.
    let shares: Option<Vec<_>> = quotas.iter().map(share).collect();
    Some(shares.unwrap_or_else(|| quotas.iter().map(|quota| **quota).collect()))
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

    fn shares(kind: AlgorithmKind, quotas: &[&str], nodes: u32) -> Option<Vec<String>> {
        let mut quotas: Vec<Quota> = quotas.iter().map(|quota| quota.parse().unwrap()).collect();
        let quotas: Vec<_> = quotas.iter_mut().collect();
        let shares = shares_of_tiers(kind, &quotas, NonZeroU32::new(nodes).unwrap())?;
        assert!(kind.with_quotas(&shares, Start::Full, Timestamp::ZERO).is_ok());
        Some(shares.iter().map(Quota::to_string).collect())
    }

    #[test]
    fn the_shares_of_tiers_have_one_period_in_which_the_smallest_has_a_token() {
        let window = |quotas: &[&str], nodes| shares(AlgorithmKind::FixedWindow, quotas, nodes);
        let some = |shares: [&str; 2]| Some(shares.map(str::to_owned).to_vec());
        assert_eq!(window(&["10/min", "100/min"], 3), some(["3/min", "33/min"]));
        assert_eq!(window(&["3/min", "100/min"], 7), some(["1 per 3 min", "42 per 3 min"]));
        let bucket = |quotas: &[&str], nodes| shares(AlgorithmKind::IntervalBucket, quotas, nodes);
        let quotas = ["3/min burst 20", "100/min burst 5"];
        assert_eq!(bucket(&quotas, 7), some(["1 per 3 min burst 2", "42 per 3 min burst 1"]));
        assert_eq!(window(&["3/min"], 7), None, "there are no tiers");
        assert_eq!(shares(AlgorithmKind::TokenBucket, &["3/min", "9/h"], 7), None, "only rates");
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
