//! What one caller has spent while its quota moves.
//!
//! A [`Limiter`](crate::Limiter) does this by itself; a store that keeps words elsewhere needs it
//! for callers whose quota changes.

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::{Algorithm, AnyAlgorithm, SpendRecord, Tokens, Word};
use crate::{Decision, Error, Quota, Settled, Timestamp};

/// What a caller has spent, under the quota in force and under those before it.
///
/// What was spent under each quota is kept apart, as a pile. Piles run off one at a time, the
/// fastest first, so that together they never run off faster than the fastest quota refills. A
/// quota that comes into force takes over their sum, but no more than its burst; from then on it
/// counts by a word of its own, and what is spent is added to its pile as well. So a quota that
/// is lowered and restored, or an override that comes and goes, gives nothing back, and charges
/// nobody for what has run off.
///
/// Debts are not cut: they are owed in tokens, and refilled by the quota in force.
#[derive(Clone, Debug)]
pub struct Account {
    /// The rule in force, and the caller's word by it.
    rule: Arc<Rule>,
    word: Word,
    /// How much of that is debt, if there are piles.
    debt: Word,
    /// The fastest first, with that of the quota in force. None while the word tells all.
    piles: Vec<Pile>,
    /// Until when the piles have run off, or when the quota last changed.
    at: Timestamp,
    /// Since when there are piles: what was called before was counted by one word.
    since: Timestamp,
}

/// A quota, and how it is counted.
#[derive(Debug, PartialEq)]
pub struct Rule {
    /// The quota.
    pub quota: Quota,
    /// How it is counted.
    pub algorithm: AnyAlgorithm,
}

impl Rule {
    /// True if words by one mean the same by the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm
    }

    /// What a new caller may not spend yet at `now`, if a limit starts empty.
    fn missing_at_the_start(&self, now: Timestamp) -> Tokens {
        self.algorithm
            .tokens(self.algorithm.fresh(Timestamp::ZERO), now)
            .min(self.algorithm.burst())
    }

    /// A word for debt alone, which ends when the window of `word` does.
    fn of_debt(&self, word: Word, now: Timestamp, debt: Tokens) -> Word {
        let spent = self.spent();
        let word = if self.algorithm.is_aligned() { spent.fresh(now) } else { word };
        spent.with_tokens(word, now, debt)
    }

    /// The same for what was spent and nothing else: a limit that starts empty is not one that has
    /// spent its burst.
    pub(crate) fn spent(&self) -> AnyAlgorithm {
        self.algorithm.starting_from(Word::from_bits(0))
    }
}

/// An [`Account`], to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedAccount {
    /// The quota in force.
    pub quota: Quota,
    /// What was spent under that quota or the quota has taken over.
    pub word: Word,
    /// How much of that is debt.
    pub debt: Word,
    /// When it was saved.
    pub at: Timestamp,
    /// Since when there are piles.
    pub since: Timestamp,
    /// What was spent under each quota and has not run off. None if the word tells all.
    pub piles: Vec<SavedPile>,
}

/// What was spent under one quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPile {
    /// The quota.
    pub quota: Quota,
    /// What was spent.
    pub word: Word,
    /// For how long the pile has waited for faster ones.
    pub lag: Duration,
}

/// What was spent under one quota.
#[derive(Clone, Debug)]
struct Pile {
    rule: Arc<Rule>,
    word: Word,
    /// For how long it has waited for faster ones. Its own time is so much behind.
    lag: Duration,
}

/// More quotas within the time that a burst refills are counted as the slower one of two.
const MOST_PILES: usize = 8;

impl Account {
    /// An account of a caller whose quota has not changed lately.
    #[must_use]
    pub fn new(rule: &Arc<Rule>, word: Word, now: Timestamp) -> Self {
        let (rule, debt) = (Arc::clone(rule), rule.spent().fresh(now));
        Self { rule, word, debt, piles: Vec::new(), at: now, since: now }
    }

    /// The rule in force.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// What the caller owes by it.
    #[must_use]
    pub fn word(&self) -> Word {
        self.word
    }

    /// Another quota is in force from now on.
    pub fn change(&mut self, rule: &Arc<Rule>, now: Timestamp) {
        if rule.is_like(&self.rule) {
            return;
        }
        // Time does not go back from one quota to the next, or what is between would refill
        // twice.
        let now = now.max(self.at);
        self.keep_apart(now);
        let (old, new) = (&self.rule.algorithm, &rule.algorithm);
        let (taken_over, debt) = (self.taken_over(rule, now), self.debt(now));
        // In the window or period in which it was last counted by the new rule, if it was; else in
        // that of the old one, unless windows begin by the clock.
        let is_other_window = new.is_aligned() && new.window() != old.window();
        let word = match self.piles.iter().find(|pile| pile.rule.is_like(rule)) {
            Some(pile) => pile.at(now),
            None if taken_over == Tokens::NONE || is_other_window => new.fresh(now),
            // What the window before weighs cannot be taken back: only what is of this quota.
            None if new.is_aligned() => new.carry_over(self.own_word(now), now, old),
            None => new.carry_over(self.word, now, old),
        };
        self.word = new.with_tokens(word, now, taken_over);
        self.debt = rule.of_debt(self.word, now, debt);
        (self.rule, self.at) = (Arc::clone(rule), now);
        self.begin_a_pile(now);
        self.forget_what_has_run_off(now);
    }

    /// Applies a step to the word, as a table does.
    pub fn act<T>(
        &mut self,
        now: Timestamp,
        mut step: impl FnMut(&AnyAlgorithm, Word) -> (T, Option<Word>),
    ) -> T {
        let (answer, next) = step(&self.rule.algorithm, self.word);
        if let Some(next) = next {
            self.replace(next, now);
        }
        answer
    }

    /// Replaces what a call has spent with the actual cost.
    pub fn settle(
        &mut self,
        spent: &SpendRecord,
        actual: u64,
        max_debt: Option<u64>,
        now: Timestamp,
    ) -> Settled {
        let mut uncharged = 0;
        match actual.checked_sub(spent.cost) {
            Some(missing) => {
                let next;
                (next, uncharged) = self.rule.algorithm.debit(self.word, now, missing, max_debt);
                self.replace(next, now);
            }
            None => self.give_back(spent, spent.cost - actual, now),
        }
        Settled { left: Decision::peek(self.rule.algorithm, self.word, now, 0), uncharged }
    }

    /// True if the word alone tells what was spent: then it may go elsewhere.
    pub fn is_settled(&mut self, now: Timestamp) -> bool {
        self.forget_what_has_run_off(now);
        self.piles.is_empty()
    }

    /// Adds what another account of the caller knows: of each quota, the larger pile counts.
    pub fn merge(&mut self, mut other: Self, now: Timestamp) {
        other.change(&self.rule, now);
        let rule = self.rule.algorithm;
        if self.piles.is_empty() && other.piles.is_empty() {
            self.word = rule.larger(other.word, self.word, now);
            return;
        }
        for account in [&mut *self, &mut other] {
            account.keep_apart(now);
        }
        self.word = rule.larger(other.word, self.word, now);
        self.debt = rule.larger(other.debt, self.debt, now);
        self.since = self.since.min(other.since);
        for pile in other.piles {
            match self.piles.iter_mut().find(|known| known.rule.is_like(&pile.rule)) {
                Some(known) => known.change(now, |held| held.max(pile.tokens(now))),
                None => self.piles.push(pile),
            }
        }
        self.begin_a_pile(now);
    }

    /// The account at `now`.
    pub fn save(&mut self, now: Timestamp) -> SavedAccount {
        self.run_off(now);
        let pile =
            |pile: &Pile| SavedPile { quota: pile.rule.quota, word: pile.word, lag: pile.lag };
        let piles = self.piles.iter().map(pile).collect();
        let (at, since) = (now, self.since);
        SavedAccount { quota: self.rule.quota, word: self.word, debt: self.debt, at, since, piles }
    }

    /// An account as it was saved. `rule` returns how a quota is counted.
    ///
    /// # Errors
    ///
    /// If `rule` does.
    pub fn restore(
        saved: &SavedAccount,
        mut rule: impl FnMut(&Quota) -> Result<Arc<Rule>, Error>,
    ) -> Result<Self, Error> {
        let in_force = rule(&saved.quota)?;
        let pile = |pile: &SavedPile| {
            Ok(Pile { rule: rule(&pile.quota)?, word: pile.word, lag: pile.lag })
        };
        let piles = saved.piles.iter().map(pile).collect::<Result<_, Error>>()?;
        let SavedAccount { word, debt, at, since, .. } = *saved;
        Ok(Self { rule: in_force, word, debt, piles, at, since })
    }

    /// Nothing is spent any more.
    pub fn reset(&mut self, now: Timestamp) {
        *self = Self::new(&self.rule, self.rule.algorithm.fresh(now), now);
    }

    fn owed(&self, now: Timestamp) -> Tokens {
        self.rule.algorithm.tokens(self.word, now)
    }

    fn debt(&self, now: Timestamp) -> Tokens {
        self.rule.spent().tokens(self.debt, now)
    }

    /// Keeps what was spent under the quota in force apart from what the next one takes over.
    fn keep_apart(&mut self, now: Timestamp) {
        let (rule, owed) = (self.rule.algorithm, self.owed(now));
        if self.piles.is_empty() && owed > Tokens::NONE {
            let (spent, missing) = (self.rule.spent(), self.rule.missing_at_the_start(now));
            self.debt = self.rule.of_debt(self.word, now, owed.minus(rule.burst()));
            let word = match missing {
                Tokens::NONE => self.word,
                _ => spent.with_tokens(self.word, now, owed.minus(missing)),
            };
            // Most callers have no more than one change in the time of a refill.
            self.piles.reserve_exact(2);
            self.piles.push(Pile { rule: Arc::clone(&self.rule), word, lag: Duration::ZERO });
            (self.at, self.since) = (now, now);
        }
        self.run_off(now);
    }

    /// What a quota takes over: what has not run off, no more than its burst, and all debts.
    fn taken_over(&self, rule: &Rule, now: Timestamp) -> Tokens {
        let debt = match self.piles.is_empty() {
            true => Tokens::NONE,
            false => self.debt(now),
        };
        let kept = self.piles.iter().fold(Tokens::NONE, |sum, pile| sum.plus(pile.tokens(now)));
        let kept = kept.minus(debt).plus(rule.missing_at_the_start(now));
        kept.min(rule.algorithm.burst()).plus(debt)
    }

    /// Replaces the word, and changes the piles by the same.
    fn replace(&mut self, next: Word, now: Timestamp) {
        if self.piles.is_empty() || next == self.word {
            self.word = next;
            return;
        }
        let (before, after) = (self.owed(now), self.rule.algorithm.tokens(next, now));
        self.word = next;
        self.run_off(now);
        self.move_debt(before, after, now);
        self.add(after.minus(before), now);
        self.take(before.minus(after), now);
    }

    /// Changes the debt with what is owed: by as much as is beyond the burst.
    fn move_debt(&mut self, before: Tokens, after: Tokens, now: Timestamp) {
        let burst = self.rule.algorithm.burst();
        let debt = self.debt(now).plus(after.max(burst)).minus(before.max(burst));
        self.debt = self.rule.spent().with_tokens(self.debt, now, debt);
    }

    /// What was spent under the quota in force, and nothing that it has taken over.
    fn own_word(&self, now: Timestamp) -> Word {
        let own = self.piles.iter().find(|pile| pile.rule.is_like(&self.rule));
        own.map_or(self.word, |pile| pile.at(now))
    }

    /// Where there are piles, the quota in force has one.
    fn begin_a_pile(&mut self, now: Timestamp) {
        let is_own = |pile: &Pile| pile.rule.is_like(&self.rule);
        if !self.piles.is_empty() && !self.piles.iter().any(is_own) {
            let word = self.rule.spent().fresh(now);
            self.piles.push(Pile { rule: Arc::clone(&self.rule), word, lag: Duration::ZERO });
        }
        self.piles.sort_by_key(|pile| pile.rule.algorithm.token_time());
        while self.piles.len() > MOST_PILES {
            let Some(place) = self.piles.iter().position(|pile| !is_own(pile)) else { return };
            let fastest = self.piles.remove(place).tokens(now);
            if let Some(slower) = self.piles.get_mut(place) {
                slower.change(now, |held| held.plus(fastest));
            }
        }
    }

    /// Adds to the pile of the quota in force.
    fn add(&mut self, tokens: Tokens, now: Timestamp) {
        for pile in self.piles.iter_mut().filter(|pile| pile.rule.is_like(&self.rule)) {
            pile.change(now, |held| held.plus(tokens));
        }
    }

    /// Takes what was returned, first from the pile of the quota in force.
    fn take(&mut self, mut tokens: Tokens, now: Timestamp) {
        for is_own in [true, false] {
            let of_rule = |pile: &&mut Pile| pile.rule.is_like(&self.rule) == is_own;
            for pile in self.piles.iter_mut().filter(of_rule) {
                let held = pile.tokens(now);
                pile.change(now, |held| held.minus(tokens));
                tokens = tokens.minus(held);
            }
        }
    }

    /// Returns what a call has not used, as far as its pile still holds it.
    fn give_back(&mut self, spent: &SpendRecord, unused: u64, now: Timestamp) {
        let rule = self.rule.algorithm;
        if self.piles.is_empty() {
            if rule == spent.algorithm {
                self.word = rule.refund_call(self.word, now, unused, spent.word);
            }
            return;
        }
        self.run_off(now);
        // At that instant, if it was under another quota.
        let is_from_before =
            spent.at < self.since || (spent.at == self.since && spent.algorithm != rule);
        let of_call = |pile: &&mut Pile| pile.rule.algorithm == spent.algorithm;
        let Some(pile) = self.piles.iter_mut().find(of_call) else { return };
        let given = pile.give_back(spent, unused, is_from_before, now);
        // No less than it would take over now.
        let owed = self.owed(now);
        let left = owed.minus(given).max(self.taken_over(&self.rule, now)).min(owed);
        self.word = rule.with_tokens(self.word, now, left);
        self.move_debt(owed, left, now);
    }

    /// Lets the piles run off until `now`, one after the other. Windows end when they end.
    fn run_off(&mut self, now: Timestamp) {
        if now <= self.at || self.rule.algorithm.has_windows() {
            return;
        }
        let mut turn = self.at;
        for pile in &mut self.piles {
            pile.lag += turn.since(self.at);
            let left = pile.rule.algorithm.reset_after(pile.word, pile.time(turn));
            turn = left.map_or(now, |left| (turn + left).min(now));
        }
        self.at = now;
    }

    pub(crate) fn forget_what_has_run_off(&mut self, now: Timestamp) {
        if self.piles.is_empty() {
            return;
        }
        self.run_off(now);
        let own = &self.rule;
        self.piles.retain(|pile| pile.rule.is_like(own) || pile.tokens(now) > Tokens::NONE);
        let owed = self.owed(now);
        // All of it was spent under the quota in force, or is debt beyond its burst.
        let missing = own.missing_at_the_start(now);
        let is_all = matches!(&self.piles[..], [pile] if pile.tokens(now).plus(missing) == owed);
        if is_all && self.debt(now) <= owed.minus(self.rule.algorithm.burst()) {
            self.piles.clear();
        }
    }
}

impl Pile {
    /// The time by which it runs off.
    fn time(&self, now: Timestamp) -> Timestamp {
        now - self.lag
    }

    /// The word by the time of everyone else.
    fn at(&self, now: Timestamp) -> Word {
        match self.lag {
            Duration::ZERO => self.word,
            _ => self.rule.algorithm.rebase(self.word, self.time(now), now),
        }
    }

    fn tokens(&self, now: Timestamp) -> Tokens {
        self.rule.algorithm.tokens(self.word, self.time(now))
    }

    fn change(&mut self, now: Timestamp, change: impl FnOnce(Tokens) -> Tokens) {
        let (rule, now) = (self.rule.spent(), self.time(now));
        self.word = rule.with_tokens(self.word, now, change(rule.tokens(self.word, now)));
    }

    /// Takes what a call has not used, except what has run off since. Returns how much that is.
    fn give_back(
        &mut self,
        spent: &SpendRecord,
        unused: u64,
        is_from_before: bool,
        now: Timestamp,
    ) -> Tokens {
        let held = self.tokens(now);
        let rule = self.rule.spent();
        let word = match is_from_before {
            true => spent.word,
            // What else the pile held then is not known, so the call has run off first.
            false => {
                let at = self.time(spent.at);
                rule.debit_up_to(rule.fresh(at), at, spent.cost, rule.deepest())
            }
        };
        self.word = rule.refund_call(self.word, self.time(now), unused, word);
        held.minus(self.tokens(now))
    }
}
