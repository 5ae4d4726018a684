//! Adaptive limits: how calls ended, and what is logged and counted when a limit moves.

use spillgate_policy::store::Store;
use spillgate_policy::{CallReport, Error, Outcome};

use crate::Enforcer;
use crate::adaptive_log::Noticed;

impl<S: Store, R> Enforcer<S, R> {
    /// Notes how calls ended that a program elsewhere made, and how long each took. See
    /// [`Gate::report_all`](spillgate_policy::Gate::report_all).
    ///
    /// # Errors
    ///
    /// As for [`Gate::report_all`](spillgate_policy::Gate::report_all).
    pub fn report_all<'a>(&self, reports: &[CallReport<'a>]) -> Result<(), (&'a str, Error)> {
        self.gate.report_all(reports)?;
        self.note_steps();
        Ok(())
    }

    /// Notes that the service failed to answer an allowed request at all. See
    /// [`Gate::fail`](spillgate_policy::Gate::fail).
    pub fn fail(&self, outcome: &mut Outcome<'_>) {
        self.gate.fail(outcome);
        self.note_steps_of(outcome);
    }

    /// Counts and logs the steps of adaptive limits, if the request met one.
    pub(crate) fn note_steps_of(&self, outcome: &Outcome<'_>) {
        if outcome.limits().any(|limit| limit.is_adaptive()) {
            self.note_steps();
        }
    }

    /// Counts and logs the steps that adaptive limits took since the last look at them.
    pub(crate) fn note_steps(&self) {
        if !self.adaptive.is_due(self.gate.store().now()) {
            return;
        }
        self.adaptive.look(&self.gate.adaptive_states(), |state, noticed| {
            let Some(meter) = &self.meter else { return };
            match noticed {
                Noticed::New => drop(meter.limit(&state.limit).begin_shed()),
                Noticed::Moved(changes) => {
                    meter.stepped(&state.limit, state.status.reason, changes);
                }
            }
        });
    }
}
