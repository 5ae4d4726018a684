//! Debts of callers that were admitted during an outage, to be debited in Redis.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};

use super::core::Caller;
use crate::Name;
use crate::effective_quota::EffectiveQuota;
use crate::pending_call::{CallNotifier, PendingCall};
use crate::stats::Counter;

/// Callers with a debt.
///
/// A caller is debited before Redis is asked about it again, and otherwise soon after the outage.
/// If the table is full, the smallest debt is dropped and counted.
#[derive(Debug)]
pub(super) struct Unreported {
    debtors: Mutex<Debtors>,
    /// Usually zero: then the lock is not taken.
    count: AtomicUsize,
    /// True while a background task debits them.
    pub(super) is_reporting: AtomicBool,
    /// Tokens that will not be debited.
    forgiven: Counter,
}

/// A set-associative table: a flood of small debts does not evict larger ones.
#[derive(Debug)]
struct Debtors {
    places: Box<[Vec<(Name, Debtor)>]>,
    count: usize,
    /// Callers that are being debited: one task each, whatever they owe meanwhile.
    reports: HashMap<Name, PendingCall>,
    /// Where [`some`](Self::some) continues.
    cursor: usize,
}

#[derive(Debug, Default)]
struct Debtor {
    /// One per quota.
    debts: SmallVec<[Debt; 1]>,
}

/// The debt under one quota.
#[derive(Clone, Debug)]
pub(super) struct Debt {
    pub(super) caller: Caller,
    /// What was admitted.
    pub(super) tokens: u64,
    /// The word of this node's share: what has been refilled is no longer owed.
    spent: (AnyAlgorithm, Word),
}

/// Room for 65,536 callers of about 500 bytes.
const PLACES: usize = 4096;
const WAYS: usize = 16;

/// Quotas per caller; beyond, the last one takes all.
const QUOTAS: usize = 8;

/// How many are debited at a time.
pub(super) const AT_ONCE: usize = 16;

impl Unreported {
    /// Callers with a debt.
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Tokens admitted that will not be debited.
    pub(super) fn forgiven(&self) -> u64 {
        self.forgiven.value()
    }

    /// Records an admitted cost, with the word of the share after it.
    pub(super) fn add(
        &self,
        caller: &Caller,
        tokens: u64,
        spent: (AnyAlgorithm, Word),
        local: Timestamp,
    ) {
        let mut debtors = self.debtors();
        let forgiven = debtors.make_room(caller.name, local);
        self.forgiven.add(usize::try_from(forgiven).unwrap_or(usize::MAX));
        debtors.debtor_or_new(caller.name).add(caller, tokens, spent, local);
        self.note(&debtors);
    }

    /// Reduces a debt that was debited or given back.
    pub(super) fn subtract(&self, caller: &Caller, tokens: u64) {
        self.change(caller.name, |debtor| debtor.subtract(caller.effective(), tokens));
    }

    /// Forgets the debt of a caller.
    pub(super) fn forget(&self, name: Name) {
        self.change(name, |debtor| debtor.debts.clear());
    }

    fn change(&self, name: Name, change: impl FnOnce(&mut Debtor)) {
        if self.len() == 0 {
            return;
        }
        let mut debtors = self.debtors();
        if let Some(debtor) = debtors.debtor(name) {
            change(debtor);
            if debtor.debts.is_empty() {
                debtors.remove(name);
            }
        }
        self.note(&debtors);
    }

    /// The report about a caller with a debt: the one under way, or one that is begun now.
    pub(super) fn report(
        &self,
        name: Name,
        begin: impl FnOnce(CallNotifier),
    ) -> Option<PendingCall> {
        if self.len() == 0 {
            return None;
        }
        let mut debtors = self.debtors();
        debtors.debtor(name)?;
        let known = debtors.reports.get(&name).filter(|report| report.is_under_way());
        if let Some(known) = known {
            return Some(known.clone());
        }
        let (report, notifier) = PendingCall::begin();
        debtors.reports.insert(name, report.clone());
        drop(debtors);
        begin(notifier);
        Some(report)
    }

    /// The next debt to be reported. If there is none, the report ends: what is admitted from now
    /// on begins another.
    pub(super) fn next_debt(&self, name: Name) -> Option<Debt> {
        let mut debtors = self.debtors();
        let debt = debtors.debtor(name).and_then(|debtor| debtor.debts.first().cloned());
        if debt.is_none() {
            debtors.reports.remove(&name);
        }
        debt
    }

    /// Ends a report that has failed.
    pub(super) fn end_report(&self, name: Name) {
        self.debtors().reports.remove(&name);
    }

    /// Some callers with a debt, others the next time.
    pub(super) fn some(&self) -> SmallVec<[Name; AT_ONCE]> {
        self.debtors().some()
    }

    fn debtors(&self) -> MutexGuard<'_, Debtors> {
        self.debtors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, debtors: &Debtors) {
        // A hint, changed under the lock: a call that misses it is concurrent with the admission.
        self.count.store(debtors.count, Ordering::Relaxed);
    }
}

impl Default for Unreported {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| Vec::new()).collect();
        Self {
            debtors: Mutex::new(Debtors { places, count: 0, reports: HashMap::new(), cursor: 0 }),
            count: AtomicUsize::new(0),
            is_reporting: AtomicBool::new(false),
            forgiven: Counter::default(),
        }
    }
}

impl Debtors {
    fn place(&mut self, name: Name) -> &mut Vec<(Name, Debtor)> {
        // A name is random, so any of its bits will do.
        let bits = u128::from_le_bytes(*name.as_bytes()) as usize;
        &mut self.places[bits % PLACES]
    }

    fn debtor(&mut self, name: Name) -> Option<&mut Debtor> {
        self.place(name).iter_mut().find(|(other, _)| *other == name).map(|(_, debtor)| debtor)
    }

    fn debtor_or_new(&mut self, name: Name) -> &mut Debtor {
        let known = self.place(name).iter().position(|(other, _)| *other == name);
        let index = known.unwrap_or_else(|| {
            self.place(name).push((name, Debtor::default()));
            self.count += 1;
            self.place(name).len() - 1
        });
        &mut self.place(name)[index].1
    }

    fn remove(&mut self, name: Name) {
        let place = self.place(name);
        let before = place.len();
        place.retain(|(other, _)| *other != name);
        self.count -= before - self.place(name).len();
    }

    /// Makes room for a debtor. Returns the debt that is dropped for it.
    fn make_room(&mut self, name: Name, local: Timestamp) -> u64 {
        let place = self.place(name);
        if place.len() < WAYS || place.iter().any(|(other, _)| *other == name) {
            return 0;
        }
        let owed = |(_, debtor): &(Name, Debtor)| debtor.owed(local);
        let least = (0..place.len()).min_by_key(|index| owed(&place[*index])).unwrap_or(0);
        let (_, gone) = place.swap_remove(least);
        self.count -= 1;
        gone.owed(local)
    }

    fn some(&mut self) -> SmallVec<[Name; AT_ONCE]> {
        let mut some = SmallVec::new();
        for _ in 0..PLACES {
            if some.len() >= AT_ONCE {
                break;
            }
            self.cursor = (self.cursor + 1) % PLACES;
            some.extend(self.places[self.cursor].iter().map(|(name, _)| *name));
        }
        some
    }
}

impl Debtor {
    fn add(&mut self, caller: &Caller, tokens: u64, spent: (AnyAlgorithm, Word), local: Timestamp) {
        let is_alike = |debt: &&mut Debt| debt.caller.effective().is_like(caller.effective());
        let is_full = self.debts.len() >= QUOTAS;
        let known = match self.debts.iter_mut().find(is_alike) {
            None if is_full => self.debts.last_mut(),
            known => known,
        };
        let Some(known) = known else {
            self.debts.push(Debt { caller: caller.clone(), tokens, spent });
            return;
        };
        known.tokens = known.tokens.saturating_add(tokens);
        // Admissions may be recorded out of order.
        let ((old, before), (new, after)) = (known.spent, spent);
        known.spent = if old == new { (new, new.larger(before, after, local)) } else { spent };
    }

    fn owed(&self, local: Timestamp) -> u64 {
        self.debts.iter().map(|debt| debt.owed(local)).sum()
    }

    fn subtract(&mut self, effective: &EffectiveQuota, tokens: u64) {
        let alike = self.debts.iter_mut().find(|debt| debt.caller.effective().is_like(effective));
        if let Some(debt) = alike {
            debt.tokens = debt.tokens.saturating_sub(tokens);
        }
        self.debts.retain(|debt| debt.tokens > 0);
    }
}

impl Debt {
    /// What is still owed.
    pub(super) fn owed(&self, local: Timestamp) -> u64 {
        let (share, word) = self.spent;
        self.tokens.min(share.owed(word, local))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::store::limits::Limit;
    use spillgate_policy::Key;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn caller(number: u64) -> Caller {
        let limit = Arc::new(Limit::per_second());
        let (name, by_policy) = (limit.caller(&Key::from_bytes(&number.to_le_bytes())), limit.base);
        Caller { limit, name, by_policy, by_override: None }
    }

    /// Lets a caller through by a share that refills one in a second.
    fn admit(unreported: &Unreported, number: u64, tokens: u64) {
        let caller = caller(number);
        let share = caller.by_policy.algorithm;
        let word = share.debit_up_to(share.fresh(NOW), NOW, tokens, share.deepest());
        unreported.add(&caller, tokens, (share, word), NOW);
    }

    fn owed(unreported: &Unreported, number: u64, local: Timestamp) -> u64 {
        unreported.next_debt(caller(number).name).map_or(0, |debt| debt.owed(local))
    }

    #[test]
    fn what_is_refilled_is_owed_no_more_and_what_is_subtracted_is_gone() {
        let unreported = Unreported::default();
        admit(&unreported, 1, 5);
        assert_eq!((unreported.len(), owed(&unreported, 1, NOW)), (1, 5));
        assert_eq!(owed(&unreported, 1, NOW + Duration::from_secs(3)), 2);
        unreported.subtract(&caller(1), 4);
        assert_eq!((unreported.len(), owed(&unreported, 1, NOW)), (1, 1));
        unreported.subtract(&caller(1), 1);
        assert_eq!((unreported.len(), unreported.forgiven()), (0, 0));
    }

    #[test]
    fn a_flood_of_callers_replaces_none_that_owe_more() {
        let unreported = Unreported::default();
        for number in 0..80_000 {
            admit(&unreported, number, 1);
        }
        admit(&unreported, 1_000_000, 2);
        for number in 80_000..100_000 {
            admit(&unreported, number, 1);
        }
        assert_eq!(owed(&unreported, 1_000_000, NOW), 2);
        assert!(unreported.len() <= PLACES * WAYS);
        assert_eq!(unreported.len() as u64 + unreported.forgiven(), 100_001);
    }

    #[test]
    fn a_caller_has_one_report_whatever_it_owes_meanwhile() {
        let unreported = Unreported::default();
        let name = caller(1).name;
        let begun = std::cell::RefCell::new(Vec::new());
        let report = || unreported.report(name, |notifier| begun.borrow_mut().push(notifier));
        assert!(report().is_none(), "nothing is owed");
        admit(&unreported, 1, 5);
        assert!(report().is_some());
        // All of it is debited, and it owes again before the report has ended.
        unreported.subtract(&caller(1), 5);
        admit(&unreported, 1, 1);
        assert!(report().is_some_and(|report| report.is_under_way()));
        assert_eq!(begun.borrow().len(), 1);
        assert_eq!(unreported.next_debt(name).map(|debt| debt.tokens), Some(1));
        unreported.subtract(&caller(1), 1);
        assert!(unreported.next_debt(name).is_none());
        admit(&unreported, 1, 1);
        assert!(report().is_some());
        assert_eq!(begun.borrow().len(), 2);
    }

    #[test]
    fn all_of_them_are_found_in_time() {
        let unreported = Unreported::default();
        for number in 0..1000 {
            admit(&unreported, number, 1);
        }
        let mut found = std::collections::HashSet::new();
        for _ in 0..200 {
            found.extend(unreported.some());
        }
        assert_eq!(found.len(), 1000);
    }
}
