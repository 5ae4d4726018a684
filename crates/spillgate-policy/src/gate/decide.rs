//! Deciding questions of any kind.

use super::adaptive::Asked;
use super::ask::{InForce, Plan};
use super::bans::BansAt;
use super::{Active, Decided, Gate, Outcome, Question, at_once};
use crate::Error;
use crate::store::Store;

impl<S: Store> Gate<S> {
    /// Decides a question, and spends its cost if it is allowed.
    ///
    /// # Errors
    ///
    /// If the store could not answer; one in memory always does. If the question names a limit
    /// or values that the policy does not have: then nothing is spent.
    pub fn decide<Q: Question>(
        &self,
        question: &Q,
    ) -> impl Future<Output = Result<Q::Outcome<'static>, Error>> + Send {
        // Declared as `Send` and not as an `async fn`, since the compiler cannot find that out
        // for callers (rust-lang/rust#100013).
        self.decide_later(question)
    }

    async fn decide_later<Q: Question>(&self, question: &Q) -> Result<Q::Outcome<'static>, Error> {
        // Once more only if a list decided by an entry that has ended.
        loop {
            let active = self.active();
            let in_force = self.in_force(&active);
            let mut outcome = Q::Outcome::begin(in_force);
            let mut plan = question.plan(in_force, &mut outcome)?;
            if plan.asks_store {
                let whole = outcome.whole_mut();
                if active.policy.has_more_than_rates {
                    let asked = self.asked(&active, question, &plan);
                    self.decide_and_count(&active, asked, whole).await?;
                } else {
                    let decided = self.store.decide(&active.limits, &mut whole.spends).await;
                    whole.conclude(decided)?;
                }
                if Q::FOLLOWS_UP {
                    Q::follow_up(self, &active.limits, &mut plan, &mut outcome).await?;
                }
            } else if self.expire_lists(&active) {
                continue;
            }
            Q::finish(plan, &mut outcome);
            return Ok(outcome.keep());
        }
    }

    /// [Decides](Self::decide) without waiting, if the store can: one in memory always does.
    /// Returns `None` if it cannot; then nothing has happened.
    ///
    /// `look` borrows the outcome while the policy is held. That avoids a reference count that
    /// all threads would share; [`Outcome::take`] keeps the outcome. `look` must not
    /// [replace](Self::replace) the policy: that would wait for `look` to return.
    #[inline]
    pub fn try_decide<Q: Question, T>(
        &self,
        question: &Q,
        look: impl FnOnce(Result<&mut Q::Outcome<'_>, Error>) -> T,
    ) -> Option<T> {
        // Once more as in `decide`. Not by a second call of this, which would not be inlined then.
        loop {
            let active = self.active();
            let in_force = self.in_force(&active);
            let mut outcome = Q::Outcome::begin(in_force);
            let mut plan = match question.plan(in_force, &mut outcome) {
                Ok(plan) => plan,
                Err(error) => return Some(look(Err(error))),
            };
            let mut decided = Ok(());
            if plan.asks_store {
                if Q::asks_again(&plan, &outcome) && !self.store.is_in_process() {
                    return None;
                }
                decided = self.decide_now(&active, question, &plan, outcome.whole_mut())?;
                if Q::FOLLOWS_UP && decided.is_ok() {
                    decided = at_once(Q::follow_up(self, &active.limits, &mut plan, &mut outcome))?;
                }
            } else if self.expire_lists(&active) {
                continue;
            }
            Q::finish(plan, &mut outcome);
            return Some(look(decided.map(|()| &mut outcome)));
        }
    }

    // Inlined, so that an outcome is not written and read again.
    #[inline(always)]
    fn decide_now<Q: Question>(
        &self,
        active: &Active<S::Limits>,
        question: &Q,
        plan: &Plan<'_>,
        outcome: &mut Outcome<'_>,
    ) -> Option<Result<(), Error>> {
        if active.policy.has_more_than_rates {
            return self.decide_and_count_now(active, question, plan, outcome);
        }
        let done = self.store.decide_now(&active.limits, &mut outcome.spends)?;
        Some(outcome.conclude(done))
    }

    /// Decides under a policy with concurrency limits, bans or adaptive limits.
    // Not inlined, so that other policies pay for one branch.
    #[inline(never)]
    fn decide_and_count_now<Q: Question>(
        &self,
        active: &Active<S::Limits>,
        question: &Q,
        plan: &Plan<'_>,
        outcome: &mut Outcome<'_>,
    ) -> Option<Result<(), Error>> {
        let decided = match active.policy.has_adaptive {
            true => {
                let asked = self.asked(active, question, plan);
                self.decide_by_load_now(active, asked, outcome)?
            }
            false => {
                let done = self.decide_by_store_now(active, outcome)?;
                outcome.conclude(done)
            }
        };
        Some(decided.map(|()| self.count_denials(active, outcome)))
    }

    /// The same, waiting for the store.
    async fn decide_and_count(
        &self,
        active: &Active<S::Limits>,
        asked: Asked,
        outcome: &mut Outcome<'_>,
    ) -> Result<(), Error> {
        let decided = match active.policy.has_adaptive {
            true => self.decide_by_load(active, asked, outcome).await,
            false => {
                let done = self.decide_by_store(active, outcome).await;
                outcome.conclude(done)
            }
        };
        decided.map(|()| self.count_denials(active, outcome))
    }

    /// What adaptive limits look at, if there are any.
    fn asked<Q: Question>(
        &self,
        active: &Active<S::Limits>,
        question: &Q,
        plan: &Plan<'_>,
    ) -> Asked {
        match active.policy.has_adaptive {
            true => question.asked(plan, active.asking(self.store.now())),
            false => Asked::default(),
        }
    }

    #[inline]
    pub(super) fn in_force<'g>(&'g self, active: &'g Active<S::Limits>) -> InForce<'g> {
        // A gate that bans nobody does not even read the clock for it.
        let bans = match self.bans.is_empty() {
            true => None,
            false => Some(BansAt { bans: &self.bans, now: self.store.now() }),
        };
        InForce { policy: &active.policy, lists: &active.lists, bans }
    }
}
