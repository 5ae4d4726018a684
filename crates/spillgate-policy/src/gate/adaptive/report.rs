//! Reports of how calls ended that were made elsewhere.

use std::sync::Arc;
use std::time::Duration;

use spillgate::adaptive::Ending;

use super::live::LiveLimit;
use crate::Error;
use crate::gate::admin::find_rule;
use crate::gate::{Active, Gate};
use crate::store::Store;

/// How calls ended that a program elsewhere made, and how long each took.
///
/// ```
/// use std::time::Duration;
///
/// use spillgate::adaptive::Ending;
/// use spillgate_policy::{Adaptive, CallReport, Gate, Limit, Policy};
///
/// let service = Limit::adaptive("service", Adaptive::auto(1..=50));
/// let gate = Gate::new(Policy::builder().limit(service).build()?)?;
/// let latency = Duration::from_millis(12);
/// let good = CallReport { limit: "service", ending: Ending::Ok, latency, count: 9 };
/// let failed = CallReport { ending: Ending::Failed, count: 1, ..good };
/// assert!(gate.report_all(&[good, failed]).is_ok());
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallReport<'a> {
    /// The limit's name.
    pub limit: &'a str,
    /// How they ended.
    pub ending: Ending,
    /// How long each took.
    pub latency: Duration,
    /// How many.
    pub count: u64,
}

impl<S: Store> Gate<S> {
    /// Notes reports about adaptive limits: all of them, or none.
    ///
    /// # Errors
    ///
    /// The limit of the first report that is wrong, and why: if there is no such limit, or it does
    /// not follow how calls end.
    pub fn report_all<'a>(&self, reports: &[CallReport<'a>]) -> Result<(), (&'a str, Error)> {
        let active = self.active();
        let find = |report: &CallReport<'a>| {
            let found = report.find(&active).map_err(|error| (report.limit, error))?;
            Ok((report.ending, report.latency, found))
        };
        let found: Vec<_> = reports.iter().map(find).collect::<Result<_, _>>()?;
        let now = self.store.now();
        for (ending, latency, (live, count)) in found {
            live.record(ending, latency, count, now);
        }
        Ok(())
    }
}

impl CallReport<'_> {
    /// The limit, and how many calls it is to note.
    fn find<'g, L>(&self, active: &'g Active<L>) -> Result<(&'g Arc<LiveLimit>, u32), Error> {
        let Self { limit, count, .. } = *self;
        let place = find_rule(&active.policy, limit)?;
        let terms = active.policy.rules[place].adaptive.as_ref();
        let (Some(terms), Some(live)) = (terms, active.adaptive.get(place)) else {
            return Err(Error::unknown(format!(
                "limit {limit:?} is not adaptive; give it `adaptive`"
            )));
        };
        if !terms.needs_endings() {
            let signal = terms.signal.name();
            let why = format!("limit {limit:?} follows {signal}, and not how calls end");
            return Err(Error::unknown(why));
        }
        let most = u32::MAX;
        u32::try_from(count).map(|count| (live, count)).map_err(|_| {
            let why = format!("{count} calls cannot be reported at once; report at most {most}");
            Error::unknown(why)
        })
    }
}
