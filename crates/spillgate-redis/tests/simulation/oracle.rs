use std::time::Duration;

use spillgate::Quota;

use crate::simulation::fleet::{Admission, CallResult};
use crate::simulation::plan::{Plan, PlannedLimit, name};
use crate::simulation::world::{History, Refund};

/// What must be true of every simulation, whatever has happened.
///
/// # Errors
///
/// If it is not: what was found.
pub(crate) fn judge(plan: &Plan, outcome: &CallResult) -> Result<(), String> {
    for (place, limit) in plan.limits.iter().enumerate() {
        let change = plan.change.filter(|_| place == 0);
        let mut bound =
            change.map_or(Bound::of(limit, outcome), |change| Bound::either(limit, &change));
        let goes_on = plan.outage == "local";
        if goes_on && plan.nodes > 1 {
            // By its share a node lets through what others had spent since it last heard.
            bound.span += limit.span();
        }
        let of_limit = outcome.admitted.iter().filter(|admission| admission.limit == place);
        let of_limit: Vec<_> = of_limit.copied().collect();
        let in_limit = |why| format!("limit {}: {why}", name(place));
        for user in 0..plan.users as usize {
            let of_user = of_limit.iter().filter(|admission| admission.user == user);
            let mut of_user: Vec<_> = of_user.copied().collect();
            of_user.sort_by_key(|admission| admission.at);
            bound.holds(&of_user).map_err(in_limit)?;
        }
        if change.is_none() && !goes_on {
            is_paid_for(limit, &of_limit, outcome).map_err(in_limit)?;
        }
    }
    Ok(())
}

/// What may be admitted: a span of time at once, and the time that passes, at one token an
/// interval. All in nanoseconds.
struct Bound {
    interval: u128,
    span: u128,
    refunds: Vec<Refund>,
}

impl Bound {
    /// The burst, and what was forgotten that had been spent.
    fn of(limit: &PlannedLimit, outcome: &CallResult) -> Self {
        let History { refunds, forgiven, .. } = &outcome.history;
        let forgiven = forgiven.get(&limit.quota()).copied().unwrap_or(0);
        let of_limit = refunds.iter().filter(|refund| refund.quota == limit.quota());
        Self {
            interval: limit.interval.as_nanos(),
            span: limit.span() + u128::from(forgiven),
            refunds: of_limit.copied().collect(),
        }
    }

    /// Both bursts, at the faster pace: while one quota takes the other's place, slices of
    /// the old may still be held.
    fn either(one: &PlannedLimit, other: &PlannedLimit) -> Self {
        let interval = one.interval.min(other.interval).as_nanos();
        let span = u128::from(one.burst + other.burst) * interval;
        Self { interval, span, refunds: Vec::new() }
    }

    /// In no interval is more admitted than that, and what was given back of what had been
    /// spent.
    fn holds(&self, admitted: &[Admission]) -> Result<(), String> {
        for (first, from) in admitted.iter().enumerate() {
            let mut spent = 0;
            for to in &admitted[first..] {
                spent += u128::from(to.cost) * self.interval;
                let allowed = self.span + (to.at - from.at).as_nanos();
                if spent > allowed && spent > allowed + self.refunded(from.at, to.at) {
                    return Err(format!(
                        "user {}: {} admitted from {:?} to {:?} are too many",
                        to.user,
                        spent / self.interval,
                        from.at,
                        to.at,
                    ));
                }
            }
        }
        Ok(())
    }

    /// What was given back so late that it can count in this time.
    fn refunded(&self, from: Duration, to: Duration) -> u128 {
        let since = from.saturating_sub(Duration::from_nanos(self.span as u64));
        let back = self.refunds.iter().filter(|refund| refund.at >= since && refund.at <= to);
        back.map(|refund| u128::from(refund.tokens) * self.interval).sum()
    }
}

/// Whatever was admitted has been taken out of the bucket, and not been put back but by a
/// refund. So a call that spent under one limit has spent under all.
fn is_paid_for(
    limit: &PlannedLimit,
    admitted: &[Admission],
    outcome: &CallResult,
) -> Result<(), String> {
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

impl PlannedLimit {
    /// How long the whole burst takes to be refilled, in nanoseconds.
    pub(crate) fn span(&self) -> u128 {
        self.interval.as_nanos() * u128::from(self.burst)
    }

    pub(crate) fn quota(&self) -> Quota {
        Quota::per(1, self.interval).burst(self.burst).build().unwrap()
    }
}
