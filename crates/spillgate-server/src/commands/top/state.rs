//! What is known of the server.

use super::caller_rates::CallerRates;
use super::history::History;
use super::status::{Ban, Status};

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The last that the server said; none yet at the beginning.
    pub(super) status: Option<Status>,
    pub(super) history: History,
    pub(super) rates: CallerRates,
    /// The bans in force; none if they are not asked for.
    pub(super) bans: Option<Vec<Ban>>,
    /// Why there was no answer to the last question.
    pub(super) failure: Option<String>,
    /// Seconds since the last answer.
    pub(super) silent: u64,
}

/// An answer may be on its way for this long without a word about it.
const PATIENCE: u64 = 3;

impl State {
    /// The server has answered.
    pub(super) fn apply(&mut self, status: Status) {
        if self.status.as_ref().is_some_and(|before| status.uptime < before.uptime) {
            // Another one, which counts from zero.
            self.rates = CallerRates::default();
        }
        self.history.push(status.time, status.second);
        self.rates.apply(status.time, &status.top);
        (self.status, self.failure, self.silent) = (Some(status), None, 0);
    }

    /// The server has not answered, or not as it should.
    pub(super) fn fail(&mut self, why: String) {
        self.failure = Some(why);
    }

    /// A second passes.
    pub(super) fn tick(&mut self) {
        self.silent = self.silent.saturating_add(1);
    }

    /// Whether there are seconds of which nothing is known.
    pub(super) fn misses_past(&self) -> bool {
        self.status.is_none() || self.failure.is_some()
    }

    /// Why what is shown is not of now.
    pub(super) fn trouble(&self) -> Option<String> {
        match &self.failure {
            Some(why) if self.status.is_none() => Some(format!("{why}; retrying")),
            Some(why) => Some(format!("{why}; retrying, last answer {} s ago", self.silent)),
            None if self.silent >= PATIENCE => Some(format!("no answer for {} s", self.silent)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_failures_are_told_until_there_is_an_answer() {
        let mut state = State::default();
        state.tick();
        assert_eq!(state.trouble(), None);
        (0..3).for_each(|_| state.tick());
        assert_eq!(state.trouble().unwrap(), "no answer for 4 s");
        state.fail("cannot reach it".to_owned());
        assert_eq!(state.trouble().unwrap(), "cannot reach it; retrying");
        state.apply(Status::default());
        assert_eq!(state.trouble(), None);
        state.tick();
        state.fail("cannot reach it".to_owned());
        assert_eq!(state.trouble().unwrap(), "cannot reach it; retrying, last answer 1 s ago");
    }
}
