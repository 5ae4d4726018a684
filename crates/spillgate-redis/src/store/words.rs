use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use spillgate::algorithm::{Algorithm, AnyAlgorithm, Layout, Word};
use spillgate::{Decision, Timestamp};

use super::cache::{Cache, Cached};
use crate::counted::Counted;
use crate::sighting::Sighting;
use crate::{Name, Terms};

/// The last words that the engine told of callers.
///
/// While the engine cannot be asked, what a caller had spent by its last word still
/// [counts](LastWord). And callers that were denied and go on asking cost the engine next to
/// nothing.
///
/// It is the word that is remembered, not the verdict: what would pass by it asks the engine.
/// Who was denied and asks again is first assumed to have spent, until the engine tells what is
/// so. Others that come meanwhile do not all ask for the one token that has been refilled; they
/// are denied as if that was gone already. Time is taken to be as early as it can be, counted
/// from when the answer was heard: who comes again after the time to wait has waited as long, and
/// who does not is not sent to ask too early, and then again.
///
/// For a denial a word counts for a second from when it was asked for. Then one call asks again,
/// and others go by the old word until that is answered. So a reset or a refund by another
/// node is noticed.
pub(super) struct Words(Cache<CallerWord>);

/// What is known of one caller.
#[derive(Clone, Copy)]
struct CallerWord {
    last: LastWord,
    /// The same, with what was asked for since and has not been answered.
    assumed: Word,
    /// True if calls may be denied by it: the caller was, and its word is not in doubt.
    denies: bool,
    /// When somebody last went to ask.
    asked: Option<Timestamp>,
    /// When nothing is spent any more, by this node's clock.
    idle_at: Timestamp,
    /// What this node has asked for and has not been answered.
    in_flight: u64,
}

/// A cost on its way to the engine: until this is dropped, it may be spent there.
pub(super) struct InFlight {
    words: Arc<Words>,
    name: Name,
    cost: u64,
}

/// A word as the engine told it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastWord {
    /// They say what the word is, whatever the tier or the quota of the next call.
    terms: Terms,
    word: Word,
    seen: Sighting,
    /// What was asked for since, and may be spent.
    in_flight: u64,
}

/// For how long a word counts for a denial, and a question may take.
const LIFETIME: Duration = Duration::from_secs(1);

impl Words {
    /// Room for the words of about so many callers.
    pub(super) fn new(callers: usize) -> Self {
        Self(Cache::new(callers))
    }

    /// The last word of a caller.
    pub(super) fn last(&self, name: Name) -> Option<LastWord> {
        let last = |known: CallerWord| LastWord { in_flight: known.in_flight, ..known.last };
        self.0.with(name, |known| known.map(last))
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

    /// Notes that a call is about to ask the engine. It must [tell](Self::tell) what that answers,
    /// or [doubt](Self::doubt).
    ///
    /// # Errors
    ///
    /// If the call need not ask: the denial.
    pub(super) fn ask(
        self: &Arc<Self>,
        name: Name,
        counted: &Counted,
        cost: u64,
        local: Timestamp,
    ) -> Result<Option<InFlight>, Decision> {
        self.0.with(name, |known| {
            let Some(known) = known else { return Ok(None) };
            let decision = known.decision(counted, cost, local);
            if let Some(denied) = decision.filter(Decision::is_denied) {
                return Err(denied);
            }
            if known.denies {
                let now = known.last.seen.earliest(local);
                let spent = counted.algorithm.spend(known.assumed, now, cost);
                known.assumed = spent.unwrap_or(known.assumed);
                known.asked = Some(local);
            }
            Ok(Some(known.send(self, name, cost)))
        })
    }

    /// Notes that a cost is on its way to the engine.
    pub(super) fn send(self: &Arc<Self>, name: Name, cost: u64) -> Option<InFlight> {
        self.0.with(name, |known| known.as_mut().map(|known| known.send(self, name, cost)))
    }

    /// Tells what word an engine had, or left. Calls of those who were denied once go by it.
    pub(super) fn tell(
        &self,
        name: Name,
        counted: &Counted,
        word: Word,
        seen: Sighting,
        is_denied: bool,
    ) {
        let last = LastWord { terms: counted.terms, word, seen, in_flight: 0 };
        let idle_after = counted.algorithm.reset_after(word, seen.now);
        let idle_at = idle_after.map_or(Timestamp::MAX, |after| seen.heard + after);
        self.0.with(name, |known| {
            let old = known.as_ref();
            let alike = old.filter(|old| old.last.terms == last.terms);
            if alike.is_some_and(|old| old.last.overtook(&last)) {
                return;
            }
            let denies = is_denied || old.is_some_and(|old| old.denies);
            let in_flight = old.map_or(0, |old| old.in_flight);
            *known =
                Some(CallerWord { last, assumed: word, denies, asked: None, idle_at, in_flight });
        });
    }

    /// Denies nobody by a word any more that is in doubt: it has been lowered, or nobody knows
    /// what became of a call. As the last word it stays.
    pub(super) fn doubt(&self, name: Name) {
        self.0.with(name, |known| {
            if let Some(known) = known {
                (known.denies, known.assumed, known.asked) = (false, known.last.word, None);
            }
        });
    }

    /// Forgets a caller that has nothing spent any more.
    pub(super) fn forget(&self, name: Name) {
        self.0.with(name, |known| *known = None);
    }
}

/// Who has something spent for longest is kept.
impl Cached for CallerWord {
    fn until(&self) -> Timestamp {
        self.idle_at
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.words.0.with(self.name, |known| {
            if let Some(known) = known {
                known.in_flight = known.in_flight.saturating_sub(self.cost);
            }
        });
    }
}

impl CallerWord {
    fn send(&mut self, words: &Arc<Words>, name: Name, cost: u64) -> InFlight {
        self.in_flight = self.in_flight.saturating_add(cost);
        InFlight { words: Arc::clone(words), name, cost }
    }

    fn decision(&self, counted: &Counted, cost: u64, local: Timestamp) -> Option<Decision> {
        let LastWord { terms, seen, .. } = self.last;
        if !self.denies || terms != counted.terms || self.is_due(local) {
            return None;
        }
        Some(Decision::peek(counted.algorithm, self.assumed, seen.earliest(local), cost))
    }

    /// True if the next call has to ask, whatever the word says.
    fn is_due(&self, local: Timestamp) -> bool {
        let is_over = |since| local.since(since) >= LIFETIME;
        is_over(self.last.seen.sent) && self.asked.is_none_or(is_over)
    }
}

impl LastWord {
    /// True if this is the later answer, although it was told first; of one moment, the one to the
    /// later question. If it is later by more than an answer takes, the engine's clock was set
    /// back, and would not be believed for as long.
    fn overtook(&self, told: &Self) -> bool {
        let order = |last: &Self| (last.seen.now, last.seen.sent);
        order(self) > order(told) && self.seen.now.since(told.seen.now) < LIFETIME
    }

    /// For how long something is still spent, of a bucket whose quota came with the call.
    pub(super) fn idle_after(&self, bucket: &AnyAlgorithm, local: Timestamp) -> Duration {
        let now = self.seen.earliest(local);
        let word = bucket.debit_up_to(self.word, now, self.in_flight, bucket.deepest());
        bucket.reset_after(word, now).unwrap_or(Duration::MAX)
    }

    /// What the word comes to under the share that one of so many nodes has, by this node's clock.
    /// A bucket that is full again at some moment is so by its share, too: that is refilled more
    /// slowly, but is smaller. What is counted is divided, and rounded up.
    pub(super) fn in_share(
        &self,
        counted: &Counted,
        share: &AnyAlgorithm,
        nodes: NonZeroU32,
        local: Timestamp,
    ) -> Word {
        let nothing = share.fresh(local);
        let is_alike = self.terms == counted.terms;
        let whole = if is_alike { Ok(counted.algorithm) } else { self.terms.algorithm() };
        let Ok(whole) = whole else { return nothing };
        let now = self.seen.earliest(local);
        let word = whole.debit_up_to(self.word, now, self.in_flight, whole.deepest());
        match whole.layout() {
            Layout::Bucket { refills: true, .. } => {
                share.keep(whole.rebase(word, now, local), local, &whole)
            }
            _ => {
                let owed = whole.owed(word, now).div_ceil(nodes.get().into());
                share.debit_up_to(nothing, local, owed, share.deepest())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spillgate::{AlgorithmKind, Start};

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
    fn denied(counted: &Counted, sent: Timestamp) -> Arc<Words> {
        let words = Arc::new(Words::new(100));
        let word = counted.algorithm.spend(counted.fresh(None), NOW, counted.terms.quota.burst());
        words.tell(NAME, counted, word.unwrap(), Sighting { now: NOW, sent, heard: sent }, true);
        words
    }

    fn is_denied(words: &Arc<Words>, counted: &Counted, cost: u64, local: Timestamp) -> bool {
        words.ask(NAME, counted, cost, local).is_err()
    }

    #[test]
    fn a_denial_is_remembered_until_the_word_would_let_the_call_pass() {
        let (counted, start) = (counted("10/s"), START);
        let words = denied(&counted, start);
        assert!(is_denied(&words, &counted, 1, start + Duration::from_millis(99)));
        assert!(!is_denied(&words, &counted, 1, start + Duration::from_millis(100)));
    }

    #[test]
    fn only_one_call_asks_for_a_token() {
        let (counted, start) = (counted("10/s"), START);
        let words = denied(&counted, start);
        let refilled = start + Duration::from_millis(100);
        assert!(!is_denied(&words, &counted, 1, refilled));
        assert!(is_denied(&words, &counted, 1, refilled));
        assert!(!is_denied(&words, &counted, 1, refilled + Duration::from_millis(100)));
    }

    #[test]
    fn after_a_second_one_call_asks_and_others_go_by_the_word_until_it_is_answered() {
        let (counted, start) = (counted("1/h"), START);
        let words = denied(&counted, start);
        let over = start + Duration::from_secs(1);
        assert!(is_denied(&words, &counted, 1, over - Duration::from_nanos(1)));
        assert!(!is_denied(&words, &counted, 1, over));
        assert!(is_denied(&words, &counted, 1, over + Duration::from_millis(50)));
        // The answer never came.
        assert!(!is_denied(&words, &counted, 1, over + Duration::from_secs(1)));
    }

    #[test]
    fn a_word_under_other_terms_tells_nothing() {
        let (old, new, start) = (counted("1/h"), counted("2/h"), START);
        let words = denied(&old, start);
        assert!(!is_denied(&words, &new, 1, start));
        assert!(is_denied(&words, &old, 1, start));
    }

    #[test]
    fn an_answer_that_was_overtaken_is_not_believed() {
        let (counted, start) = (counted("1/h"), START);
        let words = denied(&counted, start);
        let earlier = Sighting { now: NOW - Duration::from_millis(1), sent: start, heard: start };
        words.tell(NAME, &counted, counted.fresh(None), earlier, false);
        assert!(is_denied(&words, &counted, 1, start));
        let before = start - Duration::from_nanos(1);
        let same = Sighting { now: NOW, sent: before, heard: start };
        words.tell(NAME, &counted, counted.fresh(None), same, false);
        assert!(is_denied(&words, &counted, 1, start));
        words.tell(
            NAME,
            &counted,
            counted.fresh(None),
            Sighting { now: NOW + Duration::from_nanos(1), sent: start, heard: start },
            false,
        );
        assert!(!is_denied(&words, &counted, 1, start));
    }

    #[test]
    fn an_engine_whose_clock_was_set_back_is_believed() {
        let (counted, start) = (counted("1/h"), START);
        let words = denied(&counted, start);
        let back = Sighting { now: NOW - Duration::from_secs(1), sent: start, heard: start };
        words.tell(NAME, &counted, counted.fresh(None), back, false);
        assert!(!is_denied(&words, &counted, 1, start));
    }

    #[test]
    fn nobody_is_denied_by_a_word_that_has_not_denied_or_is_in_doubt() {
        let (counted, start) = (counted("1/h"), START);
        let words = Arc::new(Words::new(100));
        let seen = Sighting { now: NOW, sent: start, heard: start };
        let spent = counted.algorithm.spend(counted.fresh(None), NOW, 1).unwrap();
        words.tell(NAME, &counted, spent, seen, false);
        assert!(!is_denied(&words, &counted, 1, start));
        assert_eq!(words.last(NAME).unwrap().word, spent);

        let words = denied(&counted, start);
        words.doubt(NAME);
        assert!(!is_denied(&words, &counted, 1, start));
        assert_eq!(words.last(NAME).unwrap().word, spent);
        words.forget(NAME);
        assert!(words.last(NAME).is_none());
    }

    #[test]
    fn what_a_call_asks_for_is_no_word_of_the_engine() {
        let (counted, start) = (counted("10/s"), START);
        let words = denied(&counted, start);
        let before = words.last(NAME).unwrap().word;
        assert!(!is_denied(&words, &counted, 1, start + Duration::from_millis(100)));
        assert_eq!(words.last(NAME).unwrap().word, before);
    }

    #[test]
    fn what_is_on_its_way_counts_until_it_is_answered() {
        let (counted, start) = (counted("10/h"), START);
        let words = Arc::new(Words::new(100));
        assert!(words.ask(NAME, &counted, 3, start).unwrap_or(None).is_none(), "never seen");
        let seen = Sighting { now: NOW, sent: start, heard: start };
        words.tell(NAME, &counted, counted.fresh(None), seen, false);
        let left = || {
            let last = words.last(NAME).unwrap();
            let word = last.in_share(&counted, &counted.algorithm, NonZeroU32::MIN, start);
            counted.algorithm.remaining(word, start)
        };
        let asked = words.ask(NAME, &counted, 3, start).unwrap();
        let taken = words.send(NAME, 2);
        assert_eq!(left(), 5);
        words.tell(NAME, &counted, counted.fresh(None), seen, false);
        assert_eq!(left(), 5);
        drop(asked);
        assert_eq!(left(), 8);
        drop(taken);
        assert_eq!(left(), 10);
    }

    /// What is left of a share of a quota, of which so much is spent, some time later.
    fn left_of_share(kind: AlgorithmKind, [quota, share]: [&str; 2], spent: u64, ms: u64) -> u64 {
        let terms = Terms::new(kind, quota.parse().unwrap());
        let counted = Counted::of(terms, Whose::Limit).unwrap();
        let words = Arc::new(Words::new(100));
        let word = counted.algorithm.spend(counted.fresh(None), NOW, spent).unwrap();
        words.tell(NAME, &counted, word, Sighting { now: NOW, sent: START, heard: START }, false);
        let start = (Start::Full, Timestamp::ZERO);
        let share = kind.with_quota(&share.parse().unwrap(), start.0, start.1).unwrap();
        let local = START + Duration::from_millis(ms);
        let nodes = NonZeroU32::new(4).unwrap();
        let word = words.last(NAME).unwrap().in_share(&counted, &share, nodes, local);
        share.remaining(word, local)
    }

    #[test]
    fn a_bucket_has_spent_the_same_part_of_its_share_and_refills_at_its_pace() {
        for kind in [AlgorithmKind::TokenBucket, AlgorithmKind::LeakyBucket] {
            let left = |spent, ms| left_of_share(kind, ["40/s", "10/s"], spent, ms);
            assert_eq!([left(0, 0), left(20, 0), left(40, 0)], [10, 5, 0]);
            assert_eq!([left(1, 0), left(4, 0), left(5, 0)], [9, 9, 8], "rounded up");
            assert_eq!([left(40, 99), left(40, 100), left(40, 1000)], [0, 1, 10]);
        }
    }

    #[test]
    fn a_count_is_divided_and_rounded_up_and_ends_with_its_window() {
        use AlgorithmKind as Kind;
        for kind in [Kind::FixedWindow, Kind::SlidingWindow, Kind::IntervalBucket] {
            let left = |spent, ms| left_of_share(kind, ["40/min", "10/min"], spent, ms);
            assert_eq!([left(0, 0), left(1, 0), left(4, 0), left(5, 0)], [10, 9, 9, 8], "{kind}");
            assert_eq!([left(20, 0), left(40, 0), left(40, 120_000)], [5, 0, 10], "{kind}");
        }
        let left = |spent| left_of_share(Kind::TokenBucket, ["burst 40", "burst 10"], spent, 1);
        assert_eq!([left(0), left(1), left(39), left(40)], [10, 9, 0, 0]);
    }
}
