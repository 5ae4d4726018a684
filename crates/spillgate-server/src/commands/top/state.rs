//! What is known of the server.

use std::collections::HashMap;

use super::caller_rates::CallerRates;
use super::history::History;
use super::status::{Ban, Second, Status};

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The last that the server said; none yet at the beginning.
    pub(super) status: Option<Status>,
    pub(super) history: History,
    pub(super) rates: CallerRates,
    /// Whether callers are named in full.
    pub(super) is_revealed: bool,
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
        let before = self.status.as_ref();
        if before.is_some_and(|before| status.uptime < before.uptime) {
            // Another one, which counts from zero.
            self.rates = CallerRates::default();
        }
        let second = before.and_then(|before| between(before, &status)).unwrap_or(status.second);
        self.history.push(status.time, second);
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

/// Requests per second between two answers of the same server. Seconds as the server counts them
/// would be missed now and then, since questions are not exactly a second apart.
fn between(before: &Status, after: &Status) -> Option<Second> {
    let seconds = after.uptime - before.uptime;
    if !(0.5..2.0).contains(&seconds) {
        return None;
    }
    let earlier: HashMap<_, _> =
        before.limits.iter().map(|limit| (limit.name.raw(), limit)).collect();
    let mut sum = Second::default();
    for limit in &after.limits {
        // One that is new, or was busier than others only now, has counted for longer.
        let Some(earlier) = earlier.get(limit.name.raw()) else { continue };
        sum.allowed += limit.allowed.saturating_sub(earlier.allowed);
        sum.denied += limit.denied.saturating_sub(earlier.denied);
        sum.shadow_denied += limit.shadow_denied.saturating_sub(earlier.shadow_denied);
        sum.shed += limit.shed.saturating_sub(earlier.shed);
    }
    let per_second = |count: u64| (count as f64 / seconds).round() as u64;
    Some(Second {
        allowed: per_second(sum.allowed),
        denied: per_second(sum.denied),
        shadow_denied: per_second(sum.shadow_denied),
        shed: per_second(sum.shed),
        ..after.second
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{busy, status};
    use super::*;

    #[test]
    fn bars_are_of_all_requests_between_two_answers() {
        let (before, mut after) = (busy(0), busy(1));
        after["limits"][2]["shed"] = 9.into();
        let second = between(&status(&before), &status(&after)).unwrap();
        assert_eq!((second.allowed, second.denied, second.shed), (43, 2, 5));
        after["uptime"] = 1.into();
        assert!(between(&status(&before), &status(&after)).is_none(), "it was started again");
    }

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
