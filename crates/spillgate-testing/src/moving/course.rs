use std::collections::BTreeMap;
use std::time::Duration;

use spillgate::{AlgorithmKind, Quota, Timestamp};

use super::account::Account;
use super::history::{Amount, Change, KEYS, MovingHistory};
use super::{Caller, Moving, Own, Quotas};

/// A history while it happens to a subject, with what is known of each caller.
pub(super) struct Course<'s, S> {
    subject: &'s mut S,
    quotas: Quotas,
    accounts: BTreeMap<&'static str, Account>,
    own: BTreeMap<&'static str, Own>,
    /// The tier of each caller's last call.
    tiers: BTreeMap<&'static str, &'static str>,
    /// Calls to be settled: who made it, and its number in the account.
    open: BTreeMap<usize, (&'static str, usize)>,
    /// How long callers have waited as they were told.
    waited: Duration,
}

/// Nobody waits longer as told.
const PATIENCE: Duration = Duration::from_secs(200_000);

impl<'s, S: Moving> Course<'s, S> {
    pub(super) fn run(
        kind: AlgorithmKind,
        history: &MovingHistory,
        subject: &'s mut S,
    ) -> Result<(), String> {
        let quotas = history.quotas.clone();
        let account = |key| (key, Account::new(kind, quotas.base, history.start));
        let accounts = KEYS.into_iter().map(account).collect();
        let (own, tiers, open) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let waited = Duration::ZERO;
        let mut course = Self { subject, quotas, accounts, own, tiers, open, waited };
        for (number, (at, change)) in history.changes.iter().enumerate() {
            let now = *at + course.waited;
            let made = course.make(number, change, now);
            made.map_err(|why| format!("{}. at {now} {change:?}: {why}", number + 1))?;
        }
        course.accounts.iter().try_for_each(|(key, account)| {
            account.expect_never_too_much().map_err(|why| format!("{key}: {why}"))
        })
    }

    fn make(&mut self, number: usize, change: &Change, now: Timestamp) -> Result<(), String> {
        KEYS.into_iter().for_each(|key| self.end_override(key, now));
        match change {
            Change::Check(caller, cost) => {
                let cost = self.amount(caller.key, *cost, now);
                let is_admitted = self.subject.check(*caller, cost, now);
                self.judge(*caller, cost, is_admitted, now)?;
            }
            Change::Reserve(caller, cost) => {
                let cost = self.amount(caller.key, *cost, now);
                let is_admitted = self.subject.reserve(*caller, cost, number, now);
                if let Some(call) = self.judge(*caller, cost, is_admitted, now)? {
                    self.open.insert(number, (caller.key, call));
                }
            }
            Change::ComeBack(caller, cost) => self.come_back(*caller, *cost, now)?,
            Change::Settle(ago, actual) => {
                let number = number.saturating_sub(*ago);
                self.subject.settle(number, *actual, now);
                if let Some((key, call)) = self.open.remove(&number) {
                    self.of(key).settled(call, *actual, now);
                }
            }
            Change::Debit(key, amount) => {
                self.subject.debit(key, *amount, now);
                self.account(Caller { key, tier: None }, now).charged(*amount, now);
            }
            Change::Refund(key, amount) => {
                self.subject.refund(key, *amount, now);
                self.account(Caller { key, tier: None }, now).refunded(*amount, now);
            }
            Change::Reset(key) => {
                self.subject.reset(key, now);
                let account = self.account(Caller { key, tier: None }, now);
                account.expect_never_too_much()?;
                account.reset();
            }
            Change::Override(key, own) => {
                let until = |after: Option<Duration>| after.map(|after| now + after);
                let own = own.map(|(quota, after)| Own { quota, until: until(after) });
                self.subject.set_override(key, own, now);
                let known = self.own.remove(key);
                self.own.extend(own.map(|own| (*key, own)));
                if own.or(known).is_some() {
                    self.account(Caller { key, tier: None }, now);
                }
                self.expect_not_charged(now)?;
            }
            Change::Reload(quotas) => {
                self.subject.reload(quotas, now);
                self.quotas.clone_from(quotas);
                self.expect_not_charged(now)?;
            }
            Change::Restart => {
                let before = KEYS.map(|key| self.subject.remaining(key, now));
                self.subject.restart(now);
                self.open.clear();
                let after = KEYS.map(|key| self.subject.remaining(key, now));
                if before != after {
                    return Err(format!("{before:?} were left, and now {after:?}"));
                }
            }
        }
        Ok(())
    }

    /// Calls, and if denied again when it was told to.
    fn come_back(&mut self, caller: Caller, cost: Amount, now: Timestamp) -> Result<(), String> {
        let cost = self.amount(caller.key, cost, now);
        let is_admitted = self.subject.check(caller, cost, now);
        self.judge(caller, cost, is_admitted, now)?;
        let after = self.subject.retry_after(caller, cost, now);
        let Some(after) = after.filter(|after| !is_admitted && *after <= PATIENCE) else {
            return Ok(());
        };
        let ends = self.own.get(caller.key).and_then(|own| own.until);
        if ends.is_some_and(|until| until <= now + after) {
            return Ok(());
        }
        self.waited += after;
        let now = now + after;
        if !self.subject.check(caller, cost, now) {
            return Err(format!("{cost} did not pass after {after:?}, as was told"));
        }
        self.judge(caller, cost, true, now)?;
        Ok(())
    }

    /// Notes a call that was admitted, and returns its number; a denial must have a reason.
    fn judge(
        &mut self,
        caller: Caller,
        cost: u64,
        is_admitted: bool,
        now: Timestamp,
    ) -> Result<Option<usize>, String> {
        let account = self.account(caller, now);
        if is_admitted {
            return Ok(Some(account.admitted(cost, now)));
        }
        account.expect_reason(cost, now)?;
        Ok(None)
    }

    /// A change of quota charges nobody for what has run off.
    fn expect_not_charged(&mut self, now: Timestamp) -> Result<(), String> {
        for key in KEYS {
            let left = self.subject.remaining(key, now);
            let tier = self.tiers.get(key).copied();
            let account = self.account(Caller { key, tier }, now);
            if tier.is_some() {
                continue;
            }
            account.expect_not_charged(left, now).map_err(|why| format!("{key}: {why}"))?;
        }
        Ok(())
    }

    fn amount(&mut self, key: &'static str, amount: Amount, now: Timestamp) -> u64 {
        match amount {
            Amount::Of(amount) => amount,
            Amount::AllLeft => self.subject.remaining(key, now).max(1),
        }
    }

    /// The account of a caller, under the quota that is in force for this call.
    fn account(&mut self, caller: Caller, now: Timestamp) -> &mut Account {
        match caller.tier {
            Some(tier) => self.tiers.insert(caller.key, tier),
            None => self.tiers.remove(caller.key),
        };
        let quota = self.quota_of(caller);
        let account = self.of(caller.key);
        account.change(quota, now);
        account
    }

    /// Removes an override that is over at `now`, when it was.
    fn end_override(&mut self, key: &'static str, now: Timestamp) {
        let ended = self.own.get(key).and_then(|own| own.until).filter(|until| *until <= now);
        if let Some(until) = ended {
            self.own.remove(key);
            let quota = self.quotas.of(self.tiers.get(key).copied());
            self.of(key).change(quota, until);
        }
    }

    fn of(&mut self, key: &str) -> &mut Account {
        match self.accounts.get_mut(key) {
            Some(account) => account,
            None => panic!("{key} has an account"),
        }
    }

    fn quota_of(&self, caller: Caller) -> Quota {
        let own = self.own.get(caller.key);
        own.map_or_else(|| self.quotas.of(caller.tier), |own| own.quota)
    }
}
