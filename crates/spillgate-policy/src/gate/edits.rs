//! What is changed at run time, on top of the policy: entries of lists, overrides, and bans.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use spillgate::{Quota, Timestamp};

use super::{Active, Gate};
use crate::policy::lists::{Entry, ListKind, Lists};
use crate::store::{Edit, Store};
use crate::{Error, Terms};

/// What was changed at run time.
#[derive(Default)]
pub(super) struct Edits {
    /// How many times the policy was replaced.
    pub(super) replaced: u32,
    pub(super) lists: HashMap<(ListKind, Entry), ListEdit>,
    pub(super) overrides: HashMap<OverrideId, OverrideEdit>,
    /// Overrides that other nodes have changed, and a store elsewhere may not know.
    pub(super) unconfirmed: HashSet<OverrideId>,
    /// When an override of the policy ends that a store elsewhere does not end by itself.
    pub(super) reopen_at: Option<Timestamp>,
}

/// What became of an entry of a list.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ListEdit {
    Listed(Terms),
    /// The policy has it.
    Removed,
}

/// A limit by name, and a value for each part of its `per`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct OverrideId {
    pub(super) limit: String,
    pub(super) values: Vec<String>,
}

/// A caller's own quota.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct OverrideEdit {
    pub(super) quota: Quota,
    pub(super) terms: Terms,
}

/// One change, of which `None` undoes an earlier one.
pub(super) enum Change {
    List((ListKind, Entry), Option<ListEdit>),
    Override(OverrideId, Option<OverrideEdit>),
}

/// Where a list entry or an override comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Origin {
    /// From the policy.
    Policy,
    /// Set while the gate was deciding.
    RunTime,
}

/// How many changes are kept. Each is in memory, and every change of a list visits all of it.
const MOST: usize = 100_000;

impl Edits {
    /// The lists of a policy, edited, without what has ended.
    pub(super) fn in_force(&self, lists: &Arc<Lists>, now: Timestamp) -> Arc<Lists> {
        if self.lists.is_empty() && !lists.are_due(|| now) {
            return Arc::clone(lists);
        }
        let mut edited = Lists::clone(lists);
        for kind in ListKind::BOTH {
            let own = self.lists.iter().filter(|((list, _), _)| *list == kind);
            let own = own.map(|((_, entry), edit)| {
                (entry.clone(), effective(lists, kind, entry, Some(edit), now))
            });
            edited.edit(kind, own);
        }
        edited.expire(now);
        Arc::new(edited)
    }

    /// Forgets what has ended, and refuses a further change if there is no room for it.
    pub(super) fn make_room(&mut self, now: Timestamp) -> Result<(), Error> {
        if self.lists.len() + self.overrides.len() < MOST {
            return Ok(());
        }
        self.lists.retain(|_, edit| !edit.is_over(now));
        if self.lists.len() + self.overrides.len() < MOST {
            return Ok(());
        }
        Err(Error::unknown(format!(
            "there are {MOST} changes made at run time already; remove some, or write them into \
             the policy"
        )))
    }
}

impl ListEdit {
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        matches!(self, Self::Listed(terms) if terms.is_over(now))
    }
}

/// The terms of an entry in force: of those that the policy and an edit have, the ones that end
/// later, since the policy counts again after the edit. `None` if it is not listed.
pub(super) fn effective(
    policy: &Lists,
    kind: ListKind,
    entry: &Entry,
    edit: Option<&ListEdit>,
    now: Timestamp,
) -> Option<Terms> {
    let by_policy = || policy.list(kind).terms_at(entry, now);
    match edit {
        None => by_policy(),
        Some(ListEdit::Removed) => None,
        Some(ListEdit::Listed(terms)) if terms.is_over(now) => by_policy(),
        Some(ListEdit::Listed(terms)) => Some(match by_policy() {
            Some(by_policy) => terms.clone().later(by_policy),
            None => terms.clone(),
        }),
    }
}

impl<S: Store> Gate<S> {
    /// What was changed at run time and is in force, to be saved or shared. Keys and values may hold
    /// secrets.
    pub fn edits(&self) -> Vec<Edit> {
        let now = self.store.now();
        let edits = self.lock();
        let lists = edits.lists.iter().filter(|(_, edit)| !edit.is_over(now));
        let lists = lists.map(|(id, edit)| Change::List(id.clone(), Some(edit.clone())));
        let overrides = edits.overrides.iter().filter(|(_, edit)| !edit.terms.is_over(now));
        let overrides =
            overrides.map(|(id, edit)| Change::Override(id.clone(), Some(edit.clone())));
        let edits: Vec<_> = lists.chain(overrides).map(Edit::from).collect();
        [edits, self.ban_edits()].concat()
    }

    /// Makes a change that was saved, or that another node has made. Of a change whose time is over
    /// nothing stays. Changes of a kind that is not known are ignored.
    ///
    /// # Errors
    ///
    /// If the edit cannot be understood, or the store refuses a quota.
    pub fn apply(&self, edit: &Edit) -> Result<(), Error> {
        self.apply_all(std::slice::from_ref(edit))
    }

    /// [Applies](Self::apply) many edits at once, which takes as long as one.
    ///
    /// # Errors
    ///
    /// The first one. All other edits are applied nevertheless.
    pub fn apply_all(&self, all: &[Edit]) -> Result<(), Error> {
        let now = self.store.now();
        let mut edits = self.lock();
        let mut done = Ok(());
        let mut lists_changed = false;
        for edit in all {
            let applied = match decode(edit, now) {
                Ok(None) => {
                    self.apply_ban(edit);
                    Ok(())
                }
                Ok(Some(Change::List(id, edit))) => {
                    lists_changed = true;
                    match edit {
                        Some(edit) => drop(edits.lists.insert(id, edit)),
                        None => drop(edits.lists.remove(&id)),
                    }
                    Ok(())
                }
                Ok(Some(Change::Override(id, edit))) => self.take_over(&mut edits, id, edit),
                Err(why) => Err(why),
            };
            done = done.and(applied);
        }
        if lists_changed {
            let active = self.active();
            self.put_in_force(edits.in_force(&active.policy.lists, now));
        }
        done
    }

    /// Replaces the lists that requests are decided by, while the lock is held.
    pub(super) fn put_in_force(&self, lists: Arc<Lists>) {
        let active = self.active();
        self.active.store(Some(Arc::new(Active { lists, ..Active::clone(&active) })));
    }

    /// Tells the other nodes of a change, if there are any.
    pub(super) async fn publish(&self, change: Change) -> Result<(), Error> {
        match self.store.is_in_process() {
            true => Ok(()),
            false => self.store.publish(&[change.into()]).await,
        }
    }

    /// Keeps the policy and what is changed at run time as they are.
    pub(super) fn lock(&self) -> MutexGuard<'_, Edits> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value of an edit of a list.
#[derive(Serialize, Deserialize)]
struct ListValue {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    removed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

/// The value of an edit of an override.
#[derive(Serialize, Deserialize)]
struct OverrideValue {
    quota: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

impl From<Change> for Edit {
    fn from(change: Change) -> Self {
        let text = |value: serde_json::Value| value.to_string();
        match change {
            Change::List((kind, entry), edit) => {
                let key = text(serde_json::json!(["list", kind.name(), entry.to_text()]));
                let until = match &edit {
                    Some(ListEdit::Listed(terms)) => terms.until,
                    Some(ListEdit::Removed) | None => None,
                };
                let value = edit.map(|edit| match edit {
                    ListEdit::Removed => ListValue { removed: true, comment: None },
                    ListEdit::Listed(terms) => ListValue { removed: false, comment: terms.comment },
                });
                Self::new(key, value.map(|value| text(serde_json::json!(value))), until)
            }
            Change::Override(OverrideId { limit, values }, edit) => {
                let key = [vec!["override".to_owned(), limit], values].concat();
                let until = edit.as_ref().and_then(|edit| edit.terms.until);
                let value = edit.map(|edit| OverrideValue {
                    quota: edit.quota.to_string(),
                    comment: edit.terms.comment,
                });
                let value = value.map(|value| text(serde_json::json!(value)));
                Self::new(text(serde_json::json!(key)), value, until)
            }
        }
    }
}

/// The change of an edit; `None` if it is of a kind that is not known. Keys and values may be
/// secrets, so errors do not show them.
fn decode(edit: &Edit, now: Timestamp) -> Result<Option<Change>, Error> {
    let key: Vec<String> = serde_json::from_str(&edit.key).map_err(|_| wrong())?;
    // One that has ended means the same as one that was undone.
    let is_over = edit.until.is_some_and(|until| until <= now);
    let value = edit.value.as_deref().filter(|_| !is_over);
    match key.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list", kind, entry] => {
            let kind = ListKind::BOTH.into_iter().find(|known| known.name() == kind);
            let entry = Entry::parse(entry).map_err(Error::unknown)?;
            let edit = value.map(|value| list_edit(value, edit.until, now)).transpose()?;
            Ok(Some(Change::List((kind.ok_or_else(wrong)?, entry), edit)))
        }
        ["override", limit, ref values @ ..] => {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            let id = OverrideId { limit: limit.to_owned(), values };
            let edit = value.map(|value| override_edit(value, edit.until, now)).transpose()?;
            Ok(Some(Change::Override(id, edit)))
        }
        ["list" | "override", ..] => Err(wrong()),
        _ => Ok(None),
    }
}

fn list_edit(value: &str, until: Option<Timestamp>, now: Timestamp) -> Result<ListEdit, Error> {
    let ListValue { removed, comment } = serde_json::from_str(value).map_err(|_| wrong())?;
    // A removal has no end: nobody would expect an entry to come back by itself.
    if removed {
        return Ok(ListEdit::Removed);
    }
    let terms = Terms { until, comment };
    terms.check(now).map(|()| ListEdit::Listed(terms))
}

fn override_edit(
    value: &str,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Result<OverrideEdit, Error> {
    let OverrideValue { quota, comment } = serde_json::from_str(value).map_err(|_| wrong())?;
    let (quota, terms) = (quota.parse().map_err(|_| wrong())?, Terms { until, comment });
    terms.check(now).map(|()| OverrideEdit { quota, terms })
}

fn wrong() -> Error {
    Error::unknown("an edit cannot be understood")
}
