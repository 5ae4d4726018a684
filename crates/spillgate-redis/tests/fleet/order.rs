use std::time::Duration;

use crate::common::Bound;

/// What a process of the fleet is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The server.
    pub(crate) url: String,
    /// `strict` or `leased`.
    pub(crate) sharing: String,
    /// The quota of each caller: tokens a second, and at once.
    pub(crate) rate: u64,
    pub(crate) burst: u64,
    /// How many callers there are.
    pub(crate) callers: u64,
    /// How much they ask for together, in percent of the quota.
    pub(crate) demand: u64,
    /// How many processes there are, and how many of them are asked.
    pub(crate) processes: [u64; 2],
    /// How long to go on.
    pub(crate) seconds: u64,
}

impl Order {
    /// The variable that it is handed on in.
    pub(crate) const VARIABLE: &str = "SPILLGATE_FLEET_ORDER";

    /// As text, for a process that is to be started.
    pub(crate) fn to_text(&self) -> String {
        let Self { url, sharing, rate, burst, callers, demand, processes, seconds } = self;
        let [all, asked] = processes;
        format!("{url} {sharing} {rate} {burst} {callers} {demand} {all} {asked} {seconds}")
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut words = text.split(' ');
        let (url, sharing) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        let mut number = || words.next().unwrap().parse().unwrap();
        let (rate, burst, callers) = (number(), number(), number());
        let (demand, processes) = (number(), [number(), number()]);
        let seconds = number();
        Self { url, sharing, rate, burst, callers, demand, processes, seconds }
    }

    pub(crate) fn policy(&self) -> String {
        let Self { sharing, rate, burst, .. } = self;
        // What Redis does not decide is an error: nobody's own share is to be counted.
        format!(
            "[[limit]]\nname = 'l'\nby-name = true\nper = 'user'\nquota = '{rate}/s burst {burst}'\n\
             sharing = '{sharing}'\noutage = 'closed'"
        )
    }

    pub(crate) fn bound(&self) -> Bound {
        Bound { burst: self.burst, interval: 1_000_000_000 / self.rate }
    }

    /// The most scripts that a process may have the server run in a second.
    pub(crate) fn most_calls(&self) -> f64 {
        let needed = 2 * self.processes[0] * self.rate;
        (needed as f64 / self.burst as f64).max(25.0) * self.callers as f64
    }

    /// How many tokens all callers have, from the beginning to the end.
    pub(crate) fn quota(&self) -> u64 {
        self.callers * (self.burst + self.rate * self.seconds)
    }

    /// How long one of so many tasks in each process waits between its calls.
    pub(crate) fn pace(&self, tasks: u64) -> Duration {
        let demand = self.demand * self.rate * self.callers / 100;
        Duration::from_nanos(1_000_000_000 * self.processes[1] * tasks / demand)
    }
}
