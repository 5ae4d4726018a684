//! Deciding by adaptive limits alone, while the store cannot answer.

use super::decide::expect_costs;
use crate::RequestView;
use crate::gate::ask::{Ask, Decided};
use crate::gate::{Answer, Gate, Outcome};
use crate::store::Store;

impl<S: Store> Gate<S> {
    /// Decides a request by its adaptive limits alone: for one that is to go ahead although the
    /// store could not [decide](Self::decide) about it. An outage of the store must not leave the
    /// service without protection.
    ///
    /// The outcome has nothing of other limits. `None` if the request meets no adaptive limit.
    pub fn decide_without_store(&self, request: &RequestView<'_>) -> Option<Outcome<'static>> {
        let active = self.active();
        if !active.policy.has_adaptive {
            return None;
        }
        let in_force = self.in_force(&active);
        let mut outcome = Outcome::begin(in_force);
        let plan = request.plan(in_force, &mut outcome).ok()?;
        if plan.asks_store {
            let rules = &active.policy.rules;
            outcome.spends.retain(|spend| rules[spend.limit].adaptive.is_some());
            expect_costs(&active.policy, &outcome).ok()?;
            if outcome.spends.is_empty() {
                return None;
            }
            outcome.answer = Answer::Allowed;
            let asked = request.asked(&plan, active.asking(self.store.now()));
            // If it does not take all, it has refused the request.
            self.take_all(&active, &asked, &mut outcome);
        }
        RequestView::finish(plan, &mut outcome);
        Some(outcome.keep())
    }
}
