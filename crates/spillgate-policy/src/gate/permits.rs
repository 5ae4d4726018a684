//! What is held for as long as something is in progress: by a request until its outcome is
//! dropped, by a program elsewhere until it releases it.

use std::time::Duration;

use spillgate::Decision;

use super::adaptive::of_store;
use super::admin::find;
use super::{Active, Gate, Outcome};
use crate::policy::Rule;
use crate::store::{PermitId, Permits, Spend, Store};
use crate::{Error, Policy};

/// How long permits that are acquired may live without being renewed.
const TTLS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);

/// The result of [`Gate::acquire`].
#[derive(Debug)]
#[must_use = "permits that nobody releases are held until they expire"]
pub struct Acquired {
    outcome: Outcome<'static>,
    id: Option<PermitId>,
    ttl: Duration,
}

impl Acquired {
    /// The outcome: whether it is allowed, with the state of the limit.
    pub fn outcome(&self) -> &Outcome<'static> {
        &self.outcome
    }

    /// What was decided. A limit in shadow mode may deny, and gives permits nevertheless.
    pub fn decision(&self) -> Option<&Decision> {
        self.outcome.decision()
    }

    /// Names the permits, to [renew](Gate::renew) and [release](Gate::release) them; `None` if
    /// there are none.
    #[must_use]
    pub fn id(&self) -> Option<PermitId> {
        self.id
    }

    /// After how long without being renewed they expire.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }
}

impl<S: Store> Gate<S> {
    /// Takes permits of a [concurrency limit](crate::Limit::concurrent) for something whose end
    /// only the caller knows. They are held until they are [released](Self::release), or expire
    /// `ttl` after they were acquired or last [renewed](Self::renew). Without a `ttl`, that of the
    /// limit counts. A banned caller gets none: the outcome is [`Answer::Banned`](crate::Answer).
    ///
    /// ```
    /// use spillgate_policy::{Gate, Limit, Policy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let jobs = Limit::concurrent("jobs", 1).by_name().per(["user"]);
    /// let gate = Gate::new(Policy::builder().limit(jobs).build()?)?;
    ///
    /// let first = gate.acquire("jobs", &["42"], 1, None).await?;
    /// let id = first.id().expect("nothing is in progress");
    /// assert_eq!(gate.acquire("jobs", &["42"], 1, None).await?.id(), None);
    ///
    /// assert!(gate.release(id).await?);
    /// assert!(!gate.release(id).await?, "released already");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no such limit or it is not on concurrency, the values do not fit it, the count
    /// is 0, the `ttl` is not between 1 second and 1 day, a million permits are acquired already,
    /// or the store could not answer.
    pub async fn acquire(
        &self,
        limit: &str,
        values: &[&str],
        count: u64,
        ttl: Option<Duration>,
    ) -> Result<Acquired, Error> {
        let active = self.active();
        let (place, key) = find(&active.policy, limit, values)?;
        let rule = &active.policy.rules[place];
        let Some(hold) = rule.spec.hold.filter(|_| rule.has_permits()) else {
            return Err(Error::unknown(format!(
                "limit {limit:?} is not on concurrency, so it has no permits; check it instead"
            )));
        };
        if count == 0 {
            let message = format!("limit {limit:?}: 0 permits cannot be acquired; ask for 1");
            return Err(Error::unknown(message));
        }
        let ttl = expect_ttl(ttl.unwrap_or(hold.ttl))?;
        let mut outcome = Outcome::new(&active.policy);
        if self.is_banned(&active, rule, values, &mut outcome) {
            return Ok(Acquired { outcome: outcome.take(), id: None, ttl });
        }
        let mut spend = Spend::new(place, key, count).in_mode(rule.mode);
        if let Some(live) = active.adaptive.get(place) {
            let id = self.acquire_live(&active, live, spend, ttl, &mut outcome)?;
            return Ok(Acquired { outcome: outcome.take(), id, ttl });
        }
        let (decision, id) = self.store.acquire(&active.limits, &spend, ttl).await?;
        spend.decision = Some(decision);
        outcome.spends.push(spend);
        outcome.conclude(Ok(()))?;
        self.count_denials(&active, &outcome);
        Ok(Acquired { outcome: outcome.take(), id, ttl })
    }

    /// Refuses to acquire if the caller is banned, as a check by name is.
    fn is_banned(
        &self,
        active: &Active<S::Limits>,
        rule: &Rule,
        values: &[&str],
        outcome: &mut Outcome<'_>,
    ) -> bool {
        let in_force = self.in_force(active);
        let Some(bans) = in_force.bans else { return false };
        let identifier = &in_force.policy.identifier;
        outcome.is_refused_by(bans.of_values(&rule.per, values, identifier, in_force.lists))
    }

    /// Lets permits that were [acquired](Self::acquire) expire `ttl` from now. Returns false if
    /// they had expired, or were released or never acquired.
    ///
    /// # Errors
    ///
    /// If the `ttl` is not between 1 second and 1 day, or the store could not answer.
    pub async fn renew(&self, id: PermitId, ttl: Duration) -> Result<bool, Error> {
        let ttl = expect_ttl(ttl)?;
        let active = self.active();
        if active.adaptive.acquired.renew(id, self.store.now(), ttl) {
            return Ok(true);
        }
        self.store.renew(&active.limits, id, ttl).await
    }

    /// Gives permits back that were [acquired](Self::acquire), once. Returns false if they had
    /// expired, or were released or never acquired.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn release(&self, id: PermitId) -> Result<bool, Error> {
        self.release_with(id, None).await
    }

    /// Takes permits, then spends; gives the permits back if that is denied or fails. Permits of
    /// limits in shadow mode are taken last, if all else passes.
    pub(super) async fn hold_and_decide(
        &self,
        active: &Active<S::Limits>,
        outcome: &mut Outcome<'_>,
    ) -> Result<(), Error> {
        // Dropped before they are the outcome's, they are released.
        let mut permits = Permits::new();
        let mut shadow_error = None;
        let spends = of_store(&active.policy, &mut outcome.spends);
        let Parts { enforced, rates, shadow } = Parts::of(&active.policy, spends);
        if !enforced.is_empty() {
            self.store.hold(&active.limits, enforced, &mut permits).await?;
            if enforced.iter().any(Spend::is_denied) {
                return Ok(());
            }
        }
        if !rates.is_empty() {
            let decided = self.store.decide(&active.limits, rates).await;
            if stops(&decided, rates) {
                return decided;
            }
            shadow_error = decided.err();
        }
        if !shadow.is_empty() {
            let held = self.store.hold(&active.limits, shadow, &mut permits).await;
            shadow_error = shadow_error.or(held.err());
        }
        outcome.hold(permits);
        outcome.note_shadow_error(shadow_error);
        Ok(())
    }

    /// The same without waiting, if the store can. Otherwise nothing has happened.
    pub(super) fn hold_and_decide_now(
        &self,
        active: &Active<S::Limits>,
        outcome: &mut Outcome<'_>,
    ) -> Option<Result<(), Error>> {
        let mut permits = Permits::new();
        let mut shadow_error = None;
        let spends = of_store(&active.policy, &mut outcome.spends);
        let Parts { enforced, rates, shadow } = Parts::of(&active.policy, spends);
        if !shadow.is_empty() && !self.store.is_in_process() {
            // By then something would have happened.
            return None;
        }
        if !enforced.is_empty() {
            let held = self.store.hold_now(&active.limits, enforced, &mut permits)?;
            if held.is_err() || enforced.iter().any(Spend::is_denied) {
                return Some(held);
            }
        }
        if !rates.is_empty() {
            let decided = self.store.decide_now(&active.limits, rates)?;
            if stops(&decided, rates) {
                return Some(decided);
            }
            shadow_error = decided.err();
        }
        if !shadow.is_empty() {
            let held = self.store.hold_now(&active.limits, shadow, &mut permits);
            shadow_error = shadow_error.or(held.and_then(Result::err));
        }
        outcome.hold(permits);
        outcome.note_shadow_error(shadow_error);
        Some(Ok(()))
    }
}

/// The spends of a question by how they are decided, in the order of [`Rule::turn`]. Enforced
/// ones come first of the rates too.
///
/// [`Rule::turn`]: crate::policy::Rule::turn
struct Parts<'s> {
    /// Permits of limits that enforce.
    enforced: &'s mut [Spend],
    rates: &'s mut [Spend],
    /// Permits of limits in shadow mode.
    shadow: &'s mut [Spend],
}

impl<'s> Parts<'s> {
    fn of(policy: &Policy, spends: &'s mut [Spend]) -> Self {
        let is_hold = |spend: &Spend| policy.rules[spend.limit].is_hold;
        let first = spends.partition_point(|spend| is_hold(spend) && !spend.is_shadow);
        let (enforced, rest) = spends.split_at_mut(first);
        let rates = rest.partition_point(|spend| !is_hold(spend));
        let (rates, shadow) = rest.split_at_mut(rates);
        Self { enforced, rates, shadow }
    }
}

/// True if a request does not go ahead after its rates were decided. A store that fails to decide
/// about limits in shadow mode alone stops nobody.
fn stops(decided: &Result<(), Error>, rates: &[Spend]) -> bool {
    let enforces = |spend: &Spend| !spend.is_shadow;
    match decided {
        Ok(()) => rates.iter().any(|spend| enforces(spend) && spend.is_denied()),
        Err(_) => rates.iter().any(enforces),
    }
}

fn expect_ttl(ttl: Duration) -> Result<Duration, Error> {
    match TTLS.contains(&ttl) {
        true => Ok(ttl),
        false => Err(Error::unknown(format!(
            "a permit cannot live for {ttl:?}; use a time between 1s and 1d"
        ))),
    }
}
