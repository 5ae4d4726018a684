//! Bans: offences that programs report, and the log of bans that begin.

use spillgate_policy::store::Store;
use spillgate_policy::{Ban, Error};

use crate::Enforcer;

impl<S: Store, R> Enforcer<S, R> {
    /// Counts an offence that a program reports, and logs the ban that it leads to. See
    /// [`Gate::strike`](spillgate_policy::Gate::strike).
    ///
    /// # Errors
    ///
    /// If the limit or values do not fit the policy, or the store could not answer.
    pub async fn strike(&self, limit: &str, values: &[&str]) -> Result<Option<Ban>, Error> {
        let ban = self.gate.strike(limit, values).await;
        self.note_bans();
        ban.inspect_err(|error| self.note_error(error))
    }

    /// Tells a shared store about offences and bans, and logs the bans that begin. See
    /// [`Gate::flush_offences`](spillgate_policy::Gate::flush_offences).
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn flush_offences(&self) -> Result<(), Error> {
        let flushed = self.gate.flush_offences().await;
        self.note_bans();
        flushed.inspect_err(|error| self.note_error(error))
    }

    /// Logs the bans that began.
    #[inline]
    pub(crate) fn note_bans(&self) {
        if self.gate.has_started_bans() {
            self.log_started_bans();
        }
    }

    #[cold]
    fn log_started_bans(&self) {
        let started = self.gate.take_started_bans();
        started.bans.iter().for_each(|ban| self.log.banned(ban));
        self.log.more_banned(started.others);
    }
}
