//! Deciding with adaptive limits: look at them, let the store decide about the others, take
//! them.

use std::sync::Arc;

use spillgate::{AlgorithmKind, Decision, Timestamp};

use super::asked::Asked;
use super::decision::{Refusal, Taken};
use super::live::LiveLimit;
use super::outcome::{AdaptiveOutcome, Sample};
use super::permits::AdaptivePermits;
use crate::gate::{Active, Answer, Gate, Outcome, at_once};
use crate::store::{Spend, Store};
use crate::{Error, Policy};

/// The spends of a question that the store decides about: those between the adaptive limits
/// and enforce, and those that follow load in shadow mode.
#[inline]
pub(in crate::gate) fn of_store<'s>(policy: &Policy, spends: &'s mut [Spend]) -> &'s mut [Spend] {
    if !policy.has_adaptive {
        return spends;
    }
    let is_adaptive = |spend: &Spend| policy.rules[spend.limit].adaptive.is_some();
    let first = spends.iter().take_while(|spend| is_adaptive(spend)).count();
    let (_, rest) = spends.split_at_mut(first);
    let last = rest.iter().take_while(|spend| !is_adaptive(spend)).count();
    rest.split_at_mut(last).0
}

impl<S: Store> Gate<S> {
    /// Decides under a policy with adaptive limits.
    pub(in crate::gate) async fn decide_by_load(
        &self,
        active: &Active<S::Limits>,
        asked: Asked,
        outcome: &mut Outcome<'_>,
    ) -> Result<(), Error> {
        expect_costs(&active.policy, outcome)?;
        if self.is_refused_by_load(active, &asked, outcome) {
            return Ok(());
        }
        let decided = self.decide_by_store(active, outcome).await;
        outcome.conclude(decided)?;
        if outcome.is_allowed() && !self.take_all(active, &asked, outcome) {
            self.undo(active, outcome).await;
        }
        Ok(())
    }

    /// The same without waiting, if the store can. Otherwise nothing has happened.
    // Not inlined, so that other policies pay for one branch.
    #[inline(never)]
    pub(in crate::gate) fn decide_by_load_now(
        &self,
        active: &Active<S::Limits>,
        asked: Asked,
        outcome: &mut Outcome<'_>,
    ) -> Option<Result<(), Error>> {
        if let Err(error) = expect_costs(&active.policy, outcome) {
            return Some(Err(error));
        }
        if self.is_refused_by_load(active, &asked, outcome) {
            return Some(Ok(()));
        }
        let decided = self.decide_by_store_now(active, outcome)?;
        if let Err(error) = outcome.conclude(decided) {
            return Some(Err(error));
        }
        if outcome.is_allowed() && !self.take_all(active, &asked, outcome) {
            self.undo_now(active, outcome);
        }
        Some(Ok(()))
    }

    /// Looks at the adaptive limits, before anything is spent: an overloaded service costs
    /// the store nothing.
    fn is_refused_by_load(
        &self,
        active: &Active<S::Limits>,
        asked: &Asked,
        outcome: &mut Outcome<'_>,
    ) -> bool {
        let (policy, now) = (&active.policy, self.store.now());
        let adaptive = |spend: &&mut Spend| policy.rules[spend.limit].adaptive.is_some();
        for spend in outcome.spends.iter_mut().take_while(adaptive).filter(|it| !it.is_shadow) {
            let Some(live) = active.adaptive.get(spend.limit) else { continue };
            if let Err(refusal) = self.peek_live(active, live, spend, asked, now) {
                live.refuse(asked.priority(), now);
                spend.decision = Some(refusal.decision);
                let place = spend.limit;
                outcome.refuse_by_load(place, asked, &refusal);
                return true;
            }
        }
        false
    }

    /// Looks at a limit, once more if permits have expired that programs elsewhere held.
    fn peek_live(
        &self,
        active: &Active<S::Limits>,
        live: &LiveLimit,
        spend: &Spend,
        asked: &Asked,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let peek = || live.peek(spend, asked.priority(), now).map(drop);
        peek().or_else(|refusal| match active.adaptive.acquired.return_expired(now) {
            true => peek(),
            false => Err(refusal),
        })
    }

    /// What would be decided about a limit, without counting.
    pub(in crate::gate) fn peek_decision(
        &self,
        active: &Active<S::Limits>,
        live: &LiveLimit,
        spend: &Spend,
        asked: &Asked,
    ) -> Result<Decision, Error> {
        expect_cost(&active.policy, spend)?;
        let now = self.store.now();
        active.adaptive.acquired.return_expired(now);
        let peeked = live.peek(spend, asked.priority(), now);
        Ok(peeked.unwrap_or_else(|refusal| refusal.decision))
    }

    /// Takes what all adaptive limits have for a request, or nothing. Returns whether it
    /// did.
    pub(super) fn take_all(
        &self,
        active: &Active<S::Limits>,
        asked: &Asked,
        outcome: &mut Outcome<'_>,
    ) -> bool {
        let now = self.store.now();
        let mut held = AdaptivePermits::new();
        let mut noted = AdaptiveOutcome { priority: asked.priority, ..AdaptiveOutcome::default() };
        for index in 0..outcome.spends.len() {
            let spend = &outcome.spends[index];
            let Some(live) = active.adaptive.get(spend.limit) else { continue };
            let taken = match spend.is_shadow {
                true => Ok(live.take_beyond(spend, asked.priority(), now)),
                false => live.take(spend, asked.priority(), now),
            };
            match taken {
                Ok(Taken { decision, permit }) => {
                    held.extend(permit);
                    noted.samples.extend(sample(active, spend, live, asked, now));
                    outcome.spends[index].decision = Some(decision);
                }
                Err(refusal) => {
                    self.lose(active, outcome, index, &refusal, asked);
                    return false;
                }
            }
        }
        if !held.is_empty() || !noted.samples.is_empty() {
            let rare = outcome.rare_mut();
            rare.permits.adaptive = (!held.is_empty()).then(|| Box::new(held));
            rare.adaptive = Some(Box::new(noted));
        }
        true
    }

    /// Another request was faster: gives back what was taken of the limits before.
    fn lose(
        &self,
        active: &Active<S::Limits>,
        outcome: &mut Outcome<'_>,
        index: usize,
        refusal: &Refusal,
        asked: &Asked,
    ) {
        let now = self.store.now();
        for spend in &mut outcome.spends[..index] {
            let Some(live) = active.adaptive.get(spend.limit) else { continue };
            if spend.is_allowed() {
                live.give_back(spend, now);
            }
            spend.decision = None;
        }
        outcome.spends[index].decision = Some(refusal.decision);
        let place = outcome.spends[index].limit;
        outcome.refuse_by_load(place, asked, refusal);
    }

    /// Gives back what the store has spent and held for a request that lost a race.
    async fn undo(&self, active: &Active<S::Limits>, outcome: &mut Outcome<'_>) {
        outcome.rare_mut().permits.store.clear();
        for spend in of_store(&active.policy, &mut outcome.spends) {
            if is_spent(&active.policy, spend) {
                match is_queue(&active.policy, spend) {
                    true => self.store.cancel(&active.limits, spend.clone()),
                    // If the store fails now, the cost stands.
                    false => drop(self.store.settle(&active.limits, spend, 0).await),
                }
            }
            spend.decision = None;
        }
    }

    fn undo_now(&self, active: &Active<S::Limits>, outcome: &mut Outcome<'_>) {
        if self.store.is_in_process() {
            at_once(self.undo(active, outcome)).unwrap_or_default();
            return;
        }
        outcome.rare_mut().permits.store.clear();
        for spend in of_store(&active.policy, &mut outcome.spends) {
            if is_spent(&active.policy, spend) {
                self.store.cancel(&active.limits, spend.clone());
            }
            spend.decision = None;
        }
    }
}

/// A service works on whole requests: nobody asks for several at once.
pub(super) fn expect_cost(policy: &Policy, spend: &Spend) -> Result<(), Error> {
    let rule = &policy.rules[spend.limit];
    match &rule.adaptive {
        Some(adaptive) if !adaptive.is_rate() && spend.cost > 1 => Err(Error::unknown(format!(
            "limit {:?} follows load, and counts one request at a time; ask for 1, not {}",
            rule.name, spend.cost
        ))),
        _ => Ok(()),
    }
}

pub(super) fn expect_costs(policy: &Policy, outcome: &Outcome<'_>) -> Result<(), Error> {
    outcome.spends.iter().try_for_each(|spend| expect_cost(policy, spend))
}

/// What is to be recorded of a request that goes ahead, if the limit goes by it.
fn sample<L>(
    active: &Active<L>,
    spend: &Spend,
    live: &Arc<LiveLimit>,
    asked: &Asked,
    since: Timestamp,
) -> Option<Sample> {
    let terms = active.policy.rules[spend.limit].adaptive.as_ref()?;
    let queue_wait = asked.queue_wait.filter(|_| terms.needs_queue_wait());
    let is_known = !terms.needs_queue_wait() || queue_wait.is_some();
    (is_known && spend.cost > 0).then(|| Sample { limit: Arc::clone(live), since, queue_wait })
}

fn is_spent(policy: &Policy, spend: &Spend) -> bool {
    spend.is_allowed() && spend.cost > 0 && !policy.rules[spend.limit].is_hold
}

/// Of a queue only the last place can be given back.
fn is_queue(policy: &Policy, spend: &Spend) -> bool {
    policy.rules[spend.limit].spec.algorithm == AlgorithmKind::LeakyShaper
}

impl Outcome<'_> {
    /// Refuses a request: as the fault of its caller, if the limit counts callers apart.
    pub(super) fn refuse_by_load(&mut self, place: usize, asked: &Asked, refusal: &Refusal) {
        if !self.policy().rules[place].sheds() {
            self.answer = Answer::Denied;
            return;
        }
        self.answer = Answer::Shed;
        self.rare_mut().adaptive = Some(Box::new(AdaptiveOutcome {
            priority: asked.priority,
            shed: Some((place, refusal.retry_after)),
            ..AdaptiveOutcome::default()
        }));
    }
}
