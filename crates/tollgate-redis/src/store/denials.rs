use std::time::Duration;

use tollgate::algorithm::{Algorithm, Word};
use tollgate::{Decision, Timestamp};

use super::cache::Cache;
use crate::counted::Counted;
use crate::sighting::Sighting;
use crate::{Name, Terms};

/// The words of callers that were denied, so that those who go on asking cost the engine
/// next to nothing.
///
/// It is the word that is remembered, not the verdict: what would pass by it asks the engine.
/// Whoever does is first taken to have spent, until the engine tells what is so. Others that
/// come meanwhile do not all ask for the one token that has been refilled; they are denied
/// as if that was gone already. Time is taken to be as early as it can be, counted from when
/// the answer was heard: who comes again when told to has waited as long, and who does not
/// is not sent to ask too early, and then again.
///
/// A word counts for a second from when it was asked for. Then one call asks again, and
/// others go by the old word until that is answered. So a reset or a refund by another
/// node is noticed.
pub(super) struct Denials(Cache<Remembered>);

#[derive(Clone, Copy)]
struct Remembered {
    /// They say what the word is, whatever the tier or the quota of the next call.
    terms: Terms,
    word: Word,
    seen: Sighting,
    /// When somebody last went to ask.
    asked: Option<Timestamp>,
}

/// For how long a word counts, and a question may take.
const LIFETIME: Duration = Duration::from_secs(1);

impl Denials {
    pub(super) fn new(callers: usize) -> Self {
        Self(Cache::new(callers))
    }

    /// What is known of a call: denied, or that it would pass as far as this node knows.
    pub(super) fn look(
        &self,
        name: Name,
        counted: &Counted,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        self.0.with(name, |known| known.as_ref()?.decision(counted, cost, local))
    }

    /// The denial of a call, if it can be told. If not, the call is about to ask the engine,
    /// and must [tell](Self::tell) what that answers, or [forget](Self::forget).
    pub(super) fn ask(
        &self,
        name: Name,
        counted: &Counted,
        cost: u64,
        local: Timestamp,
    ) -> Option<Decision> {
        self.0.with(name, |known| {
            let known = known.as_mut()?;
            let decision = known.decision(counted, cost, local);
            if let Some(denied) = decision.filter(Decision::is_denied) {
                return Some(denied);
            }
            let now = known.seen.earliest(local);
            known.word = counted.algorithm.spend(known.word, now, cost).unwrap_or(known.word);
            known.asked = Some(local);
            None
        })
    }

    /// Tells what word an engine had, or left. Callers that were not denied are remembered
    /// only if they were already.
    pub(super) fn tell(
        &self,
        name: Name,
        counted: &Counted,
        word: Word,
        seen: Sighting,
        is_denied: bool,
    ) {
        let told = Remembered { terms: counted.terms, word, seen, asked: None };
        self.0.with(name, |known| match known {
            Some(newer) if newer.terms == told.terms && newer.overtook(&told) => {}
            None if !is_denied => {}
            _ => *known = Some(told),
        });
    }

    /// Forgets a caller: its word has changed, or nobody knows.
    pub(super) fn forget(&self, name: Name) {
        self.0.with(name, |known| *known = None);
    }
}

impl Remembered {
    fn decision(&self, counted: &Counted, cost: u64, local: Timestamp) -> Option<Decision> {
        if self.terms != counted.terms || self.is_due(local) {
            return None;
        }
        Some(Decision::peek(counted.algorithm, self.word, self.seen.earliest(local), cost))
    }

    /// True if this is the later answer, although it was told first. If it is later by more than
    /// an answer takes, the engine's clock was set back, and would not be believed for as long.
    fn overtook(&self, told: &Self) -> bool {
        let by = self.seen.now.since(told.seen.now);
        Duration::ZERO < by && by < LIFETIME
    }

    /// True if the next call has to ask, whatever the word says.
    fn is_due(&self, local: Timestamp) -> bool {
        let is_over = |since| local.since(since) >= LIFETIME;
        is_over(self.seen.sent) && self.asked.is_none_or(is_over)
    }
}

#[cfg(test)]
mod tests {
    use tollgate::AlgorithmKind;

    use super::*;
    use crate::counted::Whose;

    const NAME: Name = Name::from_bytes([7; 16]);
    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
    const START: Timestamp = Timestamp::from_secs(77);

    fn counted(quota: &str) -> Counted {
        let terms = Terms::new(AlgorithmKind::TokenBucket, quota.parse().unwrap());
        Counted::of(terms, Whose::Limit).unwrap()
    }

    /// A caller that has just spent all it had.
    fn denied(counted: &Counted, sent: Timestamp) -> Denials {
        let denials = Denials::new(100);
        let word = counted.algorithm.spend(counted.fresh(None), NOW, counted.terms.quota.burst());
        denials.tell(NAME, counted, word.unwrap(), Sighting { now: NOW, sent, heard: sent }, true);
        denials
    }

    fn is_denied(denials: &Denials, counted: &Counted, cost: u64, local: Timestamp) -> bool {
        denials.ask(NAME, counted, cost, local).is_some()
    }

    #[test]
    fn a_denial_is_remembered_until_the_word_would_let_the_call_pass() {
        let (counted, start) = (counted("10/s"), START);
        let denials = denied(&counted, start);
        assert!(is_denied(&denials, &counted, 1, start + Duration::from_millis(99)));
        assert!(!is_denied(&denials, &counted, 1, start + Duration::from_millis(100)));
    }

    #[test]
    fn only_one_call_asks_for_a_token() {
        let (counted, start) = (counted("10/s"), START);
        let denials = denied(&counted, start);
        let refilled = start + Duration::from_millis(100);
        assert!(!is_denied(&denials, &counted, 1, refilled));
        assert!(is_denied(&denials, &counted, 1, refilled));
        assert!(!is_denied(&denials, &counted, 1, refilled + Duration::from_millis(100)));
    }

    #[test]
    fn after_a_second_one_call_asks_and_others_go_by_the_word_until_it_is_answered() {
        let (counted, start) = (counted("1/h"), START);
        let denials = denied(&counted, start);
        let over = start + Duration::from_secs(1);
        assert!(is_denied(&denials, &counted, 1, over - Duration::from_nanos(1)));
        assert!(!is_denied(&denials, &counted, 1, over));
        assert!(is_denied(&denials, &counted, 1, over + Duration::from_millis(50)));
        // The answer never came.
        assert!(!is_denied(&denials, &counted, 1, over + Duration::from_secs(1)));
    }

    #[test]
    fn a_word_under_other_terms_tells_nothing() {
        let (old, new, start) = (counted("1/h"), counted("2/h"), START);
        let denials = denied(&old, start);
        assert!(!is_denied(&denials, &new, 1, start));
        assert!(is_denied(&denials, &old, 1, start));
    }

    #[test]
    fn an_answer_that_was_overtaken_is_not_believed() {
        let (counted, start) = (counted("1/h"), START);
        let denials = denied(&counted, start);
        let earlier = Sighting { now: NOW - Duration::from_millis(1), sent: start, heard: start };
        denials.tell(NAME, &counted, counted.fresh(None), earlier, false);
        assert!(is_denied(&denials, &counted, 1, start));
        denials.tell(
            NAME,
            &counted,
            counted.fresh(None),
            Sighting { now: NOW, sent: start, heard: start },
            false,
        );
        assert!(!is_denied(&denials, &counted, 1, start));
    }

    #[test]
    fn an_engine_whose_clock_was_set_back_is_believed() {
        let (counted, start) = (counted("1/h"), START);
        let denials = denied(&counted, start);
        let back = Sighting { now: NOW - Duration::from_secs(1), sent: start, heard: start };
        denials.tell(NAME, &counted, counted.fresh(None), back, false);
        assert!(!is_denied(&denials, &counted, 1, start));
    }

    #[test]
    fn callers_that_pass_are_not_remembered() {
        let (counted, start) = (counted("1/h"), START);
        let denials = Denials::new(100);
        let seen = Sighting { now: NOW, sent: start, heard: start };
        denials.tell(NAME, &counted, counted.fresh(None), seen, false);
        assert!(denials.look(NAME, &counted, 1, start).is_none());
    }
}
