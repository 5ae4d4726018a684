//! Changing the quotas of single callers while the gate decides.

use std::collections::HashSet;
use std::sync::Arc;

use spillgate::{Quota, Timestamp};

use super::admin::find;
use super::edits::{Change, Edits, OverrideEdit, OverrideId};
use super::{Active, Gate, Origin, at_once};
use crate::config::canonical_values;
use crate::store::{LimitSpec, OverrideSpec, Store};
use crate::suggest::{hint, quoted};
use crate::{Error, Key, Policy, Problem, Terms};

/// A caller's own quota, in force. The values may be secrets.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverrideEntry {
    /// The limit's name.
    pub limit: String,
    /// Whose it is: a value for each part of the limit's `per`.
    pub values: Vec<String>,
    /// How much the caller may do.
    pub quota: Quota,
    /// When it ends, by the store's clock; `None` if it does not.
    pub until: Option<Timestamp>,
    /// Why it is there.
    pub comment: Option<String>,
    /// Who set it. After the end of one that was set at run time, the policy counts again.
    pub origin: Origin,
}

// Values may be secrets.
debug_fields!(self: OverrideEntry {
    limit: self.limit,
    quota: self.quota,
    until: self.until,
    origin: self.origin,
});

impl<S: Store> Gate<S> {
    /// Gives a caller its own quota under one limit, or replaces it and its terms. What the caller
    /// has spent stays spent. It survives [`replace`](Self::replace).
    ///
    /// In process, one with an expiry ends by itself at that very time, unless the policy has one for
    /// the same caller; then, and with a store elsewhere, once
    /// [`expire_overrides`](Self::expire_overrides) is called.
    ///
    /// # Errors
    ///
    /// As for [`peek_limit`](Self::peek_limit); if the limit's algorithm cannot count the quota, or
    /// the expiry has passed. If the other nodes could not be told, nothing has changed. If the store
    /// could not be told, [`expire_overrides`](Self::expire_overrides) tells it.
    pub async fn set_override(
        &self,
        limit: &str,
        values: &[&str],
        quota: Quota,
        terms: Terms,
    ) -> Result<(), Error> {
        let now = self.store.now();
        terms.check(now)?;
        let id = self.override_id(limit, values, Some(&quota))?;
        {
            let mut edits = self.lock();
            if !edits.overrides.contains_key(&id) {
                edits.make_room(now)?;
            }
        }
        let edit = OverrideEdit { quota, terms };
        self.publish(Change::Override(id.clone(), Some(edit.clone()))).await?;
        self.change_override(id, Some(edit)).await
    }

    /// Removes a caller's own quota that was [set](Self::set_override) at run time, so that the
    /// policy counts again. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// As for [`peek_limit`](Self::peek_limit); or if only the policy has one, which cannot be
    /// removed from it here. If the other nodes could not be told, nothing has changed.
    pub async fn remove_override(&self, limit: &str, values: &[&str]) -> Result<bool, Error> {
        let id = self.override_id(limit, values, None)?;
        let now = self.store.now();
        let is_set = self.lock().overrides.get(&id).is_some_and(|it| !it.terms.is_over(now));
        if !is_set && self.by_policy(&id, now).is_some() {
            let message = format!(
                "limit {limit:?}: this override is in the policy; remove it there, or set another \
                 one"
            );
            return Err(Error::policy(vec![Problem::new(message)]));
        }
        self.publish(Change::Override(id.clone(), None)).await?;
        self.change_override(id, None).await?;
        Ok(is_set)
    }

    /// Every caller with its own quota under a limit of the policy, in the order of the limits.
    pub fn overrides(&self) -> Vec<OverrideEntry> {
        let now = self.store.now();
        let edits = self.lock();
        let policy = &self.active().policy;
        (0..policy.rules.len()).flat_map(|place| shown(&edits, policy, place, now)).collect()
    }

    /// The callers with their own quota under one limit.
    ///
    /// # Errors
    ///
    /// If there is no such limit.
    pub fn overrides_of(&self, limit: &str) -> Result<Vec<OverrideEntry>, Error> {
        let now = self.store.now();
        let edits = self.lock();
        let policy = &self.active().policy;
        let place = policy.rule(limit).ok_or_else(|| {
            let hint = hint(limit, policy.limits());
            Error::unknown(format!("there is no limit {}{hint}", quoted(limit)))
        })?;
        Ok(shown(&edits, policy, place, now))
    }

    /// Removes overrides that have ended, as far as the store does not by itself, and passes those
    /// that other nodes have changed on to the store. [`follow`](Self::follow) does it each time.
    ///
    /// # Errors
    ///
    /// If the store could not answer. What is left is done by the next call.
    pub async fn expire_overrides(&self) -> Result<(), Error> {
        let now = self.store.now();
        let unconfirmed: Vec<_> = {
            // Of which nobody can set another meanwhile.
            let mut edits = self.lock();
            let over = edits.overrides.iter().filter(|(_, edit)| edit.terms.is_over(now));
            let over: Vec<_> = over.map(|(id, _)| id.clone()).collect();
            over.into_iter().try_for_each(|id| self.take_over(&mut edits, id, None))?;
            edits.unconfirmed.iter().cloned().collect()
        };
        for id in &unconfirmed {
            self.confirm(id).await?;
        }
        self.reopen_without_expired(now)
    }

    /// Changes an override here and in the store.
    async fn change_override(
        &self,
        id: OverrideId,
        edit: Option<OverrideEdit>,
    ) -> Result<(), Error> {
        self.take_over(&mut self.lock(), id.clone(), edit)?;
        match self.store.is_in_process() {
            true => Ok(()),
            false => self.confirm(&id).await,
        }
    }

    /// Tells a store elsewhere of an override as it is now.
    async fn confirm(&self, id: &OverrideId) -> Result<(), Error> {
        let active = self.active();
        let told = self.lock().overrides.get(id).cloned();
        if let Some((place, key)) = fitting(&active.policy, id, told.as_ref()) {
            let (quota, until) =
                told.as_ref().map_or((None, None), |edit| (Some(edit.quota), edit.terms.until));
            self.store.set_override(&active.limits, place, &key, quota, until).await?;
        }
        let mut edits = self.lock();
        // Of one that was changed meanwhile, the store may have been told before.
        match edits.overrides.get(id) == told.as_ref() {
            true => edits.unconfirmed.remove(id),
            false => edits.unconfirmed.insert(id.clone()),
        };
        Ok(())
    }

    /// Changes an override here. A store elsewhere is told by
    /// [`expire_overrides`](Self::expire_overrides).
    pub(super) fn take_over(
        &self,
        edits: &mut Edits,
        id: OverrideId,
        edit: Option<OverrideEdit>,
    ) -> Result<(), Error> {
        let active = self.active();
        if !self.store.is_in_process() {
            edits.unconfirmed.insert(id.clone());
        } else if let Some((place, key)) = fitting(&active.policy, &id, edit.as_ref()) {
            let by_policy = self.by_policy(&id, self.store.now());
            let (quota, until) = match (&edit, by_policy) {
                (None, None) => (None, None),
                (None, Some((quota, until))) => (Some(quota), until),
                (Some(edit), None) => (Some(edit.quota), edit.terms.until),
                // The store would remove it; but the policy's counts then.
                (Some(edit), Some(_)) => (Some(edit.quota), None),
            };
            let set = self.store.set_override(&active.limits, place, &key, quota, until);
            at_once(set).unwrap_or(Ok(()))?;
        }
        edits.remember(id, edit);
        Ok(())
    }

    fn override_id(
        &self,
        limit: &str,
        values: &[&str],
        quota: Option<&Quota>,
    ) -> Result<OverrideId, Error> {
        let active = self.active();
        let (place, _) = find(&active.policy, limit, values)?;
        let rule = &active.policy.rules[place];
        rule.expect_own_quota()?;
        quota.map_or(Ok(()), |quota| rule.expect_counts(quota))?;
        let values = canonical_values(&rule.per, values, &active.policy.identifier);
        Ok(OverrideId { limit: limit.to_owned(), values })
    }

    /// The quota that the policy itself has for a caller.
    fn by_policy(&self, id: &OverrideId, now: Timestamp) -> Option<(Quota, Option<Timestamp>)> {
        let policy = &self.active().policy;
        let (place, key) = fitting(policy, id, None)?;
        let own = policy.rules[place].spec.overrides.iter();
        let mut own = own.filter(|own| own.key.bytes == key.bytes && !own.is_over(now));
        own.next().map(|own| (own.quota, own.until))
    }

    /// Opens the limits of a store elsewhere again if overrides of the policy have ended.
    fn reopen_without_expired(&self, now: Timestamp) -> Result<(), Error> {
        let mut edits = self.lock();
        if edits.reopen_at.is_none_or(|time| time > now) {
            return Ok(());
        }
        let active = self.active();
        let specs = edits.specs(&active.policy, &self.store);
        let limits = Arc::new(self.store.reopen(&active.limits, &specs)?);
        self.active.store(Some(Arc::new(Active { limits, ..Active::clone(&active) })));
        Ok(())
    }
}

impl Edits {
    fn remember(&mut self, id: OverrideId, edit: Option<OverrideEdit>) {
        match edit {
            Some(edit) => drop(self.overrides.insert(id, edit)),
            None => drop(self.overrides.remove(&id)),
        }
    }

    /// The limits of a policy, as a store needs to know them: with the overrides in force. Those set
    /// at run time are among them if the store is in process; another one knows them.
    pub(super) fn specs<S: Store>(&mut self, policy: &Policy, store: &S) -> Vec<LimitSpec> {
        let now = store.now();
        let mut specs: Vec<_> =
            policy.rules.iter().map(|rule| LimitSpec::clone(&rule.spec)).collect();
        for spec in &mut specs {
            spec.overrides.retain(|own| !own.is_over(now));
        }
        if !store.is_in_process() {
            let all = specs.iter().flat_map(|spec| &spec.overrides);
            self.reopen_at = all.filter_map(|own| own.until).min();
            return specs;
        }
        for (id, edit) in self.overrides.iter().filter(|(_, edit)| !edit.terms.is_over(now)) {
            let Some((place, key)) = fitting(policy, id, Some(edit)) else { continue };
            let overrides = &mut specs[place].overrides;
            let mut own = OverrideSpec::new(key, edit.quota);
            match overrides.iter_mut().find(|other| other.key.bytes == own.key.bytes) {
                // As in `take_over`.
                Some(by_policy) => *by_policy = own,
                None => {
                    own.until = edit.terms.until;
                    overrides.push(own);
                }
            }
        }
        specs
    }
}

/// The place and key of an override, if the policy has such a limit and it can count the quota.
fn fitting(policy: &Policy, id: &OverrideId, edit: Option<&OverrideEdit>) -> Option<(usize, Key)> {
    let values: Vec<_> = id.values.iter().map(String::as_str).collect();
    let (place, key) = find(policy, &id.limit, &values).ok()?;
    let counts = |edit: &OverrideEdit| policy.rules[place].expect_counts(&edit.quota).is_ok();
    edit.is_none_or(counts).then_some((place, key))
}

/// The overrides of one limit: those of the policy in its order, then others by their values.
fn shown(edits: &Edits, policy: &Policy, place: usize, now: Timestamp) -> Vec<OverrideEntry> {
    let rule = &policy.rules[place];
    let set = edits
        .overrides
        .iter()
        .filter(|(id, edit)| *id.limit == *rule.name && !edit.terms.is_over(now));
    let mut set: Vec<_> =
        set.filter_map(|(id, edit)| Some((fitting(policy, id, Some(edit))?.1, id, edit))).collect();
    set.sort_by(|(_, one, _), (_, other, _)| one.values.cmp(&other.values));
    let replaced: HashSet<_> = set.iter().map(|(key, ..)| key.bytes.clone()).collect();
    let entry = |values: &[String], quota: Quota, terms: Terms, origin| OverrideEntry {
        limit: rule.name.to_string(),
        values: values.to_vec(),
        quota,
        until: terms.until,
        comment: terms.comment,
        origin,
    };
    let by_policy = rule.spec.overrides.iter();
    let by_policy = by_policy.filter(|own| !own.is_over(now) && !replaced.contains(&own.key.bytes));
    let by_policy = by_policy.map(|own| entry(&own.values, own.quota, own.terms(), Origin::Policy));
    let set = set
        .iter()
        .map(|(_, id, edit)| entry(&id.values, edit.quota, edit.terms.clone(), Origin::RunTime));
    by_policy.chain(set).collect()
}
