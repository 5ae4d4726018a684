use std::sync::Arc;
use std::time::Duration;

use spillgate::account::{Account, Rule, SavedAccount, SavedPile};
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{AlgorithmKind, Error, Quota, Start, Timestamp};

/// How to read a word: stored with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The algorithm.
    pub kind: AlgorithmKind,
    /// The quota.
    pub quota: Quota,
    /// True for an override set at run time. It replaces the policy's quota, and its state does not
    /// expire.
    pub is_override: bool,
}

impl Terms {
    /// The terms of a limit or a tier.
    #[must_use]
    pub const fn new(kind: AlgorithmKind, quota: Quota) -> Self {
        Self { kind, quota, is_override: false }
    }

    /// The algorithm that reads a word under these terms.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count the quota.
    pub fn algorithm(&self) -> Result<AnyAlgorithm, Error> {
        // `start` matters only for absent words.
        self.kind.with_quota(&self.quota, Start::Full, Timestamp::ZERO)
    }

    /// The rule of an [`Account`] under these terms.
    fn rule(&self) -> Result<Arc<Rule>, Error> {
        Ok(Arc::new(Rule { quota: self.quota, algorithm: self.algorithm()? }))
    }
}

/// What Redis stores for a caller under one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// How to read the word.
    pub terms: Terms,
    /// What was spent.
    pub word: Word,
    /// What was spent under several quotas, unless the word tells all.
    pub past: Option<Box<Past>>,
}

/// What a caller has spent under several quotas: the parts of a [`SavedAccount`] beside the quota
/// and the word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// How much of the word is debt.
    pub debt: Word,
    /// When it was written.
    pub at: Timestamp,
    /// Since when there are piles.
    pub since: Timestamp,
    /// What was spent under each quota.
    pub piles: Vec<SavedPile>,
}

impl State {
    /// A state whose word tells all.
    #[must_use]
    pub const fn new(terms: Terms, word: Word) -> Self {
        Self { terms, word, past: None }
    }

    /// The state of an account that is under the quota of these terms.
    pub(crate) fn of(account: &mut Account, terms: Terms, now: Timestamp) -> Self {
        if account.is_settled(now) {
            return Self::new(terms, account.word());
        }
        let SavedAccount { word, debt, at, since, piles, .. } = account.save(now);
        Self { terms, word, past: Some(Box::new(Past { debt, at, since, piles })) }
    }

    /// What the caller has spent.
    ///
    /// # Errors
    ///
    /// If the algorithm cannot count one of the quotas.
    pub(crate) fn account(&self, now: Timestamp) -> Result<Account, Error> {
        let rule = self.terms.rule()?;
        let Some(past) = &self.past else { return Ok(Account::new(&rule, self.word, now)) };
        let Past { debt, at, since, piles } = (**past).clone();
        let (quota, word) = (self.terms.quota, self.word);
        let saved = SavedAccount { quota, word, debt, at, since, piles };
        Account::restore(&saved, |quota| Terms::new(self.terms.kind, *quota).rule())
    }

    /// How long until nothing is spent any more, so that the state means the same as none; `None`
    /// if it is to be kept. Piles run off one after the other.
    pub(crate) fn idle_after(&self, now: Timestamp) -> Option<Duration> {
        if self.terms.is_override {
            return None;
        }
        let idle_after = self.terms.algorithm().ok()?.reset_after(self.word, now)?;
        if self.past.is_none() {
            return Some(idle_after);
        }
        // It may have been written long ago: piles have run off and waited since.
        let mut line = Duration::ZERO;
        for pile in self.account(now).ok()?.save(now).piles {
            let algorithm = Terms::new(self.terms.kind, pile.quota).algorithm().ok()?;
            line = line.saturating_add(algorithm.reset_after(pile.word, now - pile.lag)?);
        }
        Some(idle_after.max(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    /// A state under this quota, of a caller that has spent before under others.
    fn moved(kind: AlgorithmKind, spent: &[(&str, u64)], quota: &str) -> State {
        let terms = |quota: &str| Terms::new(kind, quota.parse().unwrap());
        let mut account: Option<Account> = None;
        for (quota, cost) in spent {
            let rule = terms(quota).rule().unwrap();
            let fresh = || Account::new(&rule, rule.algorithm.fresh(NOW), NOW);
            let account = account.get_or_insert_with(fresh);
            account.change(&rule, NOW);
            account.act(NOW, |algorithm, word| ((), algorithm.spend(word, NOW, *cost)));
        }
        let mut account = account.unwrap();
        account.change(&terms(quota).rule().unwrap(), NOW);
        State::of(&mut account, terms(quota), NOW)
    }

    #[test]
    fn a_state_is_kept_until_all_that_was_spent_has_run_off_in_line() {
        let idle_after = |spent: &[(&str, u64)], quota| {
            moved(AlgorithmKind::TokenBucket, spent, quota).idle_after(NOW)
        };
        let spent = [("10/h", 10), ("60/h", 20)];
        let secs = |secs| Some(Duration::from_secs(secs));
        assert_eq!(idle_after(&spent, "1000/s"), secs(10 * 360 + 20 * 60));
        let later = NOW + Duration::from_secs(600);
        let state = moved(AlgorithmKind::TokenBucket, &spent, "1000/s");
        assert_eq!(state.idle_after(later), secs(10 * 360 + 20 * 60 - 600));
        // The quota in force refills no faster.
        assert_eq!(idle_after(&spent, "1/h burst 30"), secs(30 * 3600));
        assert_eq!(idle_after(&[("burst 10", 3), ("10/h", 5)], "1000/s"), None);
    }

    #[test]
    fn a_state_tells_what_was_spent_until_it_has_run_off() {
        for kind in AlgorithmKind::ALL {
            let state = moved(kind, &[("10/h", 10)], "100/h");
            assert!(state.past.is_some(), "{kind}");
            let mut account = state.account(NOW).unwrap();
            assert_eq!(State::of(&mut account, state.terms, NOW), state, "{kind}");
            // Two windows count.
            let later = NOW + Duration::from_secs(2 * 3600 + 1);
            let state = State::of(&mut state.account(later).unwrap(), state.terms, later);
            assert_eq!(state.past, None, "{kind}");
        }
    }
}
