//! Changing the lists while the gate decides.

use std::sync::Arc;

use spillgate::Timestamp;

use super::edits::{Change, Edits, ListEdit, effective};
use super::{Active, ActiveGuard, Gate, Origin};
use crate::policy::lists::{Entry, ListKind, Lists};
use crate::store::Store;
use crate::{Error, Policy, Terms};

/// An entry of a list in force. It may hold a secret.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListEntry {
    /// An address range, `key:NAME` or `user:NAME`.
    pub entry: String,
    /// When it ends, by the store's clock; `None` if it does not.
    pub until: Option<Timestamp>,
    /// Why it is there.
    pub comment: Option<String>,
    /// Who put it there. After the end of one that was set at run time, the policy counts again.
    pub origin: Origin,
}

// The entry may be a secret.
debug_fields!(self: ListEntry { until: self.until, origin: self.origin });

impl<S: Store> Gate<S> {
    /// Puts an entry on a list: an address, a range, `key:NAME` or `user:NAME`. If it is there, its
    /// terms are replaced: that extends, shortens or ends its expiry. Returns whether anything
    /// changed. It survives [`replace`](Self::replace). Takes milliseconds for 100,000 ranges.
    ///
    /// ```
    /// use std::time::Duration;
    /// use spillgate_policy::{Gate, Limit, ListKind, Policy, Terms};
    /// use spillgate_policy::store::Store;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gate = Gate::new(Policy::builder().limit(Limit::new("api", "10/s")).build()?)?;
    /// let in_an_hour = gate.store().now() + Duration::from_secs(3600);
    /// let terms = Terms::until(in_an_hour).with_comment("port scan");
    /// assert!(gate.list(ListKind::Block, "203.0.113.50", terms).await?);
    /// assert_eq!(gate.listed(ListKind::Block)[0].until, Some(in_an_hour));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the entry cannot be understood, the expiry has passed, or the store could not tell the
    /// other nodes. Then nothing has changed.
    pub async fn list(&self, kind: ListKind, entry: &str, terms: Terms) -> Result<bool, Error> {
        terms.check(self.store.now())?;
        self.edit_list(kind, entry, Some(terms)).await
    }

    /// Removes an entry from a list; ranges that contain it stay. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// If the entry cannot be understood, or the store could not tell the other nodes. Then nothing
    /// has changed.
    pub async fn unlist(&self, kind: ListKind, entry: &str) -> Result<bool, Error> {
        self.edit_list(kind, entry, None).await
    }

    /// The entries of a list that are in force: ranges in their order, then keys, then users.
    pub fn listed(&self, kind: ListKind) -> Vec<ListEntry> {
        let now = self.store.now();
        let edits = self.lock();
        let active = self.active();
        let entries = active.lists.list(kind).entries();
        entries.filter_map(|entry| shown(&edits, &active.policy, kind, &entry, now)).collect()
    }

    /// One entry of a list, if it is in force.
    ///
    /// # Errors
    ///
    /// If the entry cannot be understood.
    pub fn listed_entry(&self, kind: ListKind, entry: &str) -> Result<Option<ListEntry>, Error> {
        let entry = Entry::parse(entry).map_err(Error::unknown)?;
        let edits = self.lock();
        Ok(shown(&edits, &self.active().policy, kind, &entry, self.store.now()))
    }

    async fn edit_list(
        &self,
        kind: ListKind,
        entry: &str,
        terms: Option<Terms>,
    ) -> Result<bool, Error> {
        let entry = Entry::parse(entry).map_err(Error::unknown)?;
        let Some(edit) = self.wanted(kind, &entry, terms)? else { return Ok(false) };
        let id = (kind, entry);
        self.publish(Change::List(id.clone(), edit.clone())).await?;
        let now = self.store.now();
        let mut edits = self.lock();
        let active = self.active();
        let mut lists = Lists::clone(&active.lists);
        let terms = effective(&active.policy.lists, kind, &id.1, edit.as_ref(), now);
        lists.edit(kind, [(id.1.clone(), terms)]);
        match edit {
            Some(edit) => drop(edits.lists.insert(id, edit)),
            None => drop(edits.lists.remove(&id)),
        }
        self.put_in_force(Arc::new(lists));
        Ok(true)
    }

    /// How an entry is to be edited; `None` if it is as it should be.
    fn wanted(
        &self,
        kind: ListKind,
        entry: &Entry,
        terms: Option<Terms>,
    ) -> Result<Option<Option<ListEdit>>, Error> {
        let now = self.store.now();
        let mut edits = self.lock();
        let active = self.active();
        let present = shown(&edits, &active.policy, kind, entry, now);
        let present = present.map(|it| Terms { until: it.until, comment: it.comment });
        if present == terms {
            return Ok(None);
        }
        let by_policy = active.policy.lists.list(kind).terms_at(entry, now);
        // What the policy says itself need not be remembered.
        let edit = match terms {
            terms if terms == by_policy => None,
            Some(terms) => Some(ListEdit::Listed(terms)),
            None => Some(ListEdit::Removed),
        };
        if edit.is_some() && !edits.lists.contains_key(&(kind, entry.clone())) {
            edits.make_room(now)?;
        }
        Ok(Some(edit))
    }

    /// Takes out list entries that have ended, and returns whether there were any: then lists have
    /// to be looked up again. Waits for nobody.
    #[inline]
    pub(super) fn expire_lists(&self, active: &ActiveGuard<S::Limits>) -> bool {
        let are_due = active.lists.are_due(|| self.store.now());
        if are_due {
            self.expire_due_lists(active);
        }
        are_due
    }

    #[cold]
    fn expire_due_lists(&self, active: &ActiveGuard<S::Limits>) {
        let now = self.store.now();
        let mut lists = Lists::clone(&active.lists);
        lists.expire(now);
        let next = Arc::new(Active { lists: Arc::new(lists), ..Active::clone(active) });
        // If something else is in force by now, that is looked at next.
        self.active.compare_and_swap(&**active, Some(next));
    }
}

fn shown(
    edits: &Edits,
    policy: &Policy,
    kind: ListKind,
    entry: &Entry,
    now: Timestamp,
) -> Option<ListEntry> {
    let edit = edits.lists.get(&(kind, entry.clone())).filter(|edit| !edit.is_over(now));
    let (terms, origin) = match edit {
        Some(ListEdit::Removed) => return None,
        Some(ListEdit::Listed(terms)) => (terms.clone(), Origin::RunTime),
        None => (policy.lists.list(kind).terms_at(entry, now)?, Origin::Policy),
    };
    let Terms { until, comment } = terms;
    Some(ListEntry { entry: entry.to_text(), until, comment, origin })
}
