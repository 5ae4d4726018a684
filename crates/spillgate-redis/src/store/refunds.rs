//! Refunds that Redis could not take yet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use spillgate::algorithm::SpendRecord;

use super::core::Caller;
use super::unreported::AT_ONCE;
use crate::Name;
use crate::stats::Counter;

/// Refunds to be made later: Redis was certainly not asked for them.
///
/// Callers take turns. If the table is full, the oldest of the caller whose turn is next is dropped
/// and counted, since most of it has been refilled.
#[derive(Debug, Default)]
pub(super) struct Refunds {
    waiting: Mutex<Waiting>,
    /// Held while some are made: a shutdown waits for them.
    pub(super) turn: tokio::sync::Mutex<()>,
    dropped: Counter,
}

/// The unused part of what a caller has reserved.
#[derive(Clone, Debug)]
pub(super) struct Refund {
    pub(super) caller: Caller,
    pub(super) spent: Option<SpendRecord>,
    pub(super) reserved: u64,
    pub(super) actual: u64,
}

#[derive(Debug, Default)]
struct Waiting {
    callers: HashMap<Name, VecDeque<Refund>>,
    /// Each caller once.
    turns: VecDeque<Name>,
    count: usize,
}

/// Room for so many refunds of about 500 bytes, and of each caller.
const MOST: usize = 16_384;
const EACH: usize = 256;

impl Refunds {
    /// True if none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting().count == 0
    }

    /// Tokens that are never given back.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.value()
    }

    /// Adds a refund.
    pub(super) fn add(&self, refund: Refund) {
        let gone = self.waiting().add(refund);
        gone.iter().for_each(|gone| self.note_dropped(gone));
    }

    /// Counts a refund that is not made, or may not have been.
    pub(super) fn note_dropped(&self, refund: &Refund) {
        let unused = refund.reserved.saturating_sub(refund.actual);
        self.dropped.add(usize::try_from(unused).unwrap_or(usize::MAX));
    }

    /// Removes some, of one caller after the other.
    pub(super) fn take_some(&self) -> SmallVec<[Refund; AT_ONCE]> {
        let mut waiting = self.waiting();
        std::iter::from_fn(|| waiting.next()).take(AT_ONCE).collect()
    }

    /// Drops all.
    pub(super) fn drop_all(&self) {
        let mut waiting = self.waiting();
        std::iter::from_fn(|| waiting.next()).for_each(|gone| self.note_dropped(&gone));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Adds a refund, and returns the one that it replaces.
    fn add(&mut self, refund: Refund) -> Option<Refund> {
        let name = refund.caller.name;
        let own = self.callers.entry(name).or_default();
        if own.is_empty() {
            self.turns.push_back(name);
        }
        own.push_back(refund);
        if own.len() > EACH {
            return own.pop_front();
        }
        self.count += 1;
        if self.count > MOST { self.next() } else { None }
    }

    /// Removes the oldest of the caller whose turn it is.
    fn next(&mut self) -> Option<Refund> {
        let name = self.turns.pop_front()?;
        let own = self.callers.get_mut(&name)?;
        let refund = own.pop_front();
        self.count -= usize::from(refund.is_some());
        if own.is_empty() {
            self.callers.remove(&name);
        } else {
            self.turns.push_back(name);
        }
        refund
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spillgate_policy::Key;

    use super::*;
    use crate::store::limits::Limit;

    /// A refund of so many tokens to a caller.
    fn refund(number: u64, tokens: u64) -> Refund {
        let limit = Arc::new(Limit::per_second());
        let (name, by_policy) = (limit.caller(&Key::from_bytes(&number.to_le_bytes())), limit.base);
        let caller = Caller { limit, name, by_policy, by_override: None };
        Refund { caller, spent: None, reserved: tokens, actual: 0 }
    }

    fn tokens(refunds: &Refunds) -> Vec<u64> {
        refunds.take_some().iter().map(|refund| refund.reserved).collect()
    }

    #[test]
    fn callers_take_turns() {
        let refunds = Refunds::default();
        for (number, tokens) in [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (3, 6)] {
            refunds.add(refund(number, tokens));
        }
        assert_eq!(tokens(&refunds), [1, 4, 6, 2, 5, 3]);
        assert!(refunds.is_empty());
    }

    #[test]
    fn one_caller_displaces_only_its_own_and_what_is_displaced_is_counted() {
        let refunds = Refunds::default();
        refunds.add(refund(1, 1));
        for tokens in 0..EACH as u64 + 10 {
            refunds.add(refund(2, 1000 + tokens));
        }
        assert_eq!(refunds.dropped(), (1000..1010).sum::<u64>());
        assert_eq!(tokens(&refunds)[..2], [1, 1010]);
    }

    #[test]
    fn a_full_table_has_room_for_what_is_new() {
        let refunds = Refunds::default();
        for number in 0..MOST as u64 + 100 {
            refunds.add(refund(number, 1));
        }
        assert_eq!(refunds.dropped(), 100);
        refunds.drop_all();
        assert_eq!(refunds.dropped(), MOST as u64 + 100);
        assert!(refunds.is_empty());
    }
}
