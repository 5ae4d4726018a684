//! Whether a request, or a check, is of a banned caller.

use std::sync::Arc;
use std::time::Duration;

use spillgate::Timestamp;

use super::{API_KEY, Ban, Bans, IP, USER};
use crate::key::Value;
use crate::policy::Part;
use crate::policy::identity::{Identifier, Sender, Who};
use crate::policy::lists::{ListKind, Lists};
use crate::{Caller, Mode, RequestView};

/// The bans in force at a time.
#[derive(Clone, Copy)]
pub(in crate::gate) struct BansAt<'g> {
    pub(in crate::gate) bans: &'g Bans,
    pub(in crate::gate) now: Timestamp,
}

/// A ban, and how long it still lasts.
#[derive(Clone, Debug)]
pub(in crate::gate) struct Banned {
    pub(in crate::gate) ban: Arc<Ban>,
    pub(in crate::gate) rest: Duration,
}

impl Banned {
    pub(in crate::gate) fn is_enforced(&self) -> bool {
        self.ban.mode == Mode::Enforce
    }
}

impl BansAt<'_> {
    /// The ban of the sender of a request: as the caller it is taken for, by its address, or by a
    /// key or user that limits may count.
    pub(in crate::gate) fn of_sender(
        self,
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        identifier: &Identifier,
    ) -> Option<Banned> {
        let (mut is_key, mut is_user, mut is_address) = (false, false, false);
        match &sender.who {
            Who::Named(Caller::ApiKey(_)) => is_key = true,
            Who::Named(Caller::User(_)) => is_user = true,
            Who::At(_) => is_address = true,
            Who::Named(_) | Who::Nobody => {}
        }
        let mut found = self.of(Value::from(&sender.who));
        let mut also = |value: Option<Value<'_>>| {
            if found.as_ref().is_none_or(|found| !found.is_enforced()) {
                let other = value.and_then(|value| self.of(value));
                if found.is_none() || other.as_ref().is_some_and(Banned::is_enforced) {
                    found = other;
                }
            }
        };
        if !is_address && self.bans.has(IP) {
            also(sender.client.map(|client| Value::Ip(identifier.cut(client.address))));
        }
        if !is_key && self.bans.has(API_KEY) {
            let key = identifier.api_key.accepted(request, sender.from_trusted);
            also(key.map(Value::ApiKey));
        }
        if !is_user && self.bans.has(USER) {
            let user = identifier.user.accepted(request, sender.from_trusted);
            also(user.map(Value::User));
        }
        found
    }

    /// The ban of the caller whom one of the values of a limit's parts names. The allow list takes
    /// precedence, as for requests.
    pub(in crate::gate) fn of_values(
        self,
        per: &[Part],
        values: &[&str],
        identifier: &Identifier,
        lists: &Lists,
    ) -> Option<Banned> {
        let mut found: Option<Banned> = None;
        for (part, value) in per.iter().zip(values) {
            let Some(caller) = part.caller(value) else { continue };
            let banned = self.of(Value::from(&identifier.as_counted(caller.borrowed())));
            let banned = banned.filter(|_| !is_allowed(lists, &caller, self.now));
            if found.as_ref().is_none_or(|found| !found.is_enforced()) {
                found = banned.or(found);
            }
        }
        found
    }

    /// The ban of a caller as it is counted.
    pub(in crate::gate) fn of(self, caller: Value<'_>) -> Option<Banned> {
        if matches!(caller, Value::Absent) {
            return None;
        }
        let ban = self.bans.get(self.bans.fingerprint(caller))?;
        let rest = ban.until.since(self.now);
        (!rest.is_zero()).then_some(Banned { ban, rest })
    }
}

/// The lists without what has ended.
fn in_force(lists: &Lists, now: Timestamp) -> Lists {
    let mut lists = lists.clone();
    lists.expire(now);
    lists
}

/// True if a caller is on the allow list, by an entry that has not ended.
fn is_allowed(lists: &Lists, caller: &Caller<'_>, now: Timestamp) -> bool {
    let has = |lists: &Lists| lists.list(ListKind::Allow).has_caller(caller);
    // Entries that have ended are there until a list decides about a request.
    has(lists) && (!lists.are_due(|| now) || has(&in_force(lists, now)))
}
