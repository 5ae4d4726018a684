use std::time::Duration;

use tollgate::Quota;

use crate::fleet::{Admission, Outcome};
use crate::plan::{Limit, Plan, name};
use crate::world::Refund;

/// What must be true of every simulation, whatever has happened.
///
/// # Errors
///
/// If it is not: what was found.
pub(crate) fn judge(plan: &Plan, outcome: &Outcome) -> Result<(), String> {
    for (place, limit) in plan.limits.iter().enumerate() {
        let of_limit = outcome.admitted.iter().filter(|admission| admission.limit == place);
        let of_limit: Vec<_> = of_limit.copied().collect();
        let refunds: Vec<_> =
            outcome.history.refunds.iter().filter(|refund| refund.quota == limit.quota()).collect();
        for user in 0..plan.users as usize {
            let of_user = of_limit.iter().filter(|admission| admission.user == user);
            let mut of_user: Vec<_> = of_user.copied().collect();
            of_user.sort_by_key(|admission| admission.at);
            is_within_quota(limit, &of_user, &refunds)
                .map_err(|why| format!("limit {}, user {user}: {why}", name(place)))?;
        }
        is_paid_for(limit, &of_limit, outcome)
            .map_err(|why| format!("limit {}: {why}", name(place)))?;
    }
    Ok(())
}

/// In no interval is more admitted than the burst, what is refilled meanwhile, and what was
/// given back of what had been spent.
fn is_within_quota(
    limit: &Limit,
    admitted: &[Admission],
    refunds: &[&Refund],
) -> Result<(), String> {
    let interval = limit.interval.as_nanos();
    let span = interval * u128::from(limit.burst);
    for (first, from) in admitted.iter().enumerate() {
        let mut spent = 0;
        for to in &admitted[first..] {
            spent += u128::from(to.cost) * interval;
            let refilled = (to.at - from.at).as_nanos();
            if spent <= span + refilled {
                continue;
            }
            let since = from.at.saturating_sub(Duration::from_nanos(span as u64));
            let back = refunds.iter().filter(|refund| refund.at >= since && refund.at <= to.at);
            let back: u128 = back.map(|refund| u128::from(refund.tokens) * interval).sum();
            if spent > span + refilled + back {
                return Err(format!(
                    "{} admitted from {:?} to {:?}, which is {} too many",
                    spent / interval,
                    from.at,
                    to.at,
                    (spent - span - refilled - back).div_ceil(interval),
                ));
            }
        }
    }
    Ok(())
}

/// Whatever was admitted has been taken out of the bucket, and not been put back but by a
/// refund. So a call that spent under one limit has spent under all.
fn is_paid_for(limit: &Limit, admitted: &[Admission], outcome: &Outcome) -> Result<(), String> {
    let taken = outcome.history.allocated.get(&limit.quota()).copied().unwrap_or(0);
    let of_limit = outcome.history.refunds.iter().filter(|refund| refund.quota == limit.quota());
    let refunded: u64 = of_limit.map(|refund| refund.tokens).sum();
    let spent: u64 = admitted.iter().map(|admission| admission.cost).sum();
    let interval = limit.interval.as_nanos() as i128;
    if taken + i128::from(refunded) * interval < i128::from(spent) * interval {
        return Err(format!("{spent} admitted, but only {} taken", taken / interval));
    }
    Ok(())
}

impl Limit {
    fn quota(&self) -> Quota {
        Quota::per(1, self.interval).burst(self.burst).build().unwrap()
    }
}
