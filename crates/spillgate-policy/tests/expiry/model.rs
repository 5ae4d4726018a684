//! Lists as they would be without any cleverness: every question goes through every entry.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use spillgate_policy::ListKind;

/// Seconds on the gate's clock.
pub(crate) type Seconds = u64;
pub(crate) type Entries = BTreeMap<(bool, &'static str), Option<Seconds>>;

pub(crate) const ENTRIES: [&str; 6] =
    ["10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.1/32", "key:k1", "user:u1"];

#[derive(Clone, Default)]
pub(crate) struct Model {
    pub(crate) now: Seconds,
    pub(crate) file: Entries,
    /// `None` for an entry that was removed, else until when it counts.
    pub(crate) edits: BTreeMap<(bool, &'static str), Option<Option<Seconds>>>,
}

pub(crate) fn kind(is_block: bool) -> ListKind {
    if is_block { ListKind::Block } else { ListKind::Allow }
}

impl Model {
    fn is_over(&self, until: Option<Seconds>) -> bool {
        until.is_some_and(|until| until <= self.now)
    }

    fn by_file(&self, id: (bool, &'static str)) -> Option<Option<Seconds>> {
        self.file.get(&id).copied().filter(|until| !self.is_over(*until))
    }

    /// Until when an entry counts, as it is shown, and whether it was set at run time.
    fn shown(&self, id: (bool, &'static str)) -> Option<(Option<Seconds>, bool)> {
        match self.edits.get(&id) {
            Some(None) => None,
            Some(Some(until)) if !self.is_over(*until) => Some((*until, true)),
            _ => self.by_file(id).map(|until| (until, false)),
        }
    }

    /// All that a list shows.
    pub(crate) fn listed(&self, is_block: bool) -> BTreeSet<(String, Option<Seconds>, bool)> {
        let shown = |entry: &'static str| {
            let (until, at_run_time) = self.shown((is_block, entry))?;
            Some((entry.to_owned(), until, at_run_time))
        };
        ENTRIES.into_iter().filter_map(shown).collect()
    }

    pub(crate) fn list(&mut self, id: (bool, &'static str), until: Option<Seconds>) -> bool {
        if self.shown(id).is_some_and(|(shown, _)| shown == until) {
            return false;
        }
        match self.by_file(id) == Some(until) {
            true => self.edits.remove(&id),
            false => self.edits.insert(id, Some(until)),
        };
        true
    }

    pub(crate) fn unlist(&mut self, id: (bool, &'static str)) -> bool {
        let is_there = self.shown(id).is_some();
        if is_there {
            match self.by_file(id) {
                Some(_) => self.edits.insert(id, None),
                None => self.edits.remove(&id),
            };
        }
        is_there
    }

    /// The server stops, and starts again after a time with a clock that reads `now`.
    pub(crate) fn restart(&mut self, down: Seconds, now: Seconds) {
        let then = self.now + down;
        let edits = std::mem::take(&mut self.edits);
        let moved = edits.into_iter().filter_map(|(id, edit)| match edit {
            Some(Some(until)) if until <= then => None,
            Some(Some(until)) => Some((id, Some(Some(now + until - then)))),
            other => Some((id, other)),
        });
        self.edits = moved.collect();
        self.now = now;
    }

    /// Whether a caller is on a list.
    pub(crate) fn holds(&self, is_block: bool, address: &str, key: &str, user: &str) -> bool {
        let address: std::net::IpAddr = address.parse().unwrap();
        ENTRIES.into_iter().any(|entry| {
            let matches = match entry.split_once(':') {
                Some(("key", name)) => name == key,
                Some((_, name)) => name == user,
                None => entry.parse::<IpNet>().unwrap().contains(&address),
            };
            matches && self.shown((is_block, entry)).is_some()
        })
    }

    /// The file as a text.
    pub(crate) fn toml(&self) -> String {
        let list = |is_block: bool| {
            let own = self.file.iter().filter(|((block, _), _)| *block == is_block);
            let entries = own.map(|((_, entry), until)| match until {
                None => format!("{entry:?}"),
                Some(until) => {
                    let time = spillgate::Timestamp::from_secs(*until);
                    let time = spillgate_policy::rfc3339::format(time);
                    format!("{{ entry = {entry:?}, expires = {time} }}")
                }
            });
            entries.collect::<Vec<_>>().join(", ")
        };
        format!(
            "allow = [{}]\nblock = [{}]\n\
             [identity]\norder = ['ip']\napi-key = {{ header = 'x-api-key', accept = 'any' }}\n\
             user = {{ header = 'x-user-id', accept = 'any' }}\n\
             [[limit]]\nname = 'l'\nquota = '1000/s'\n",
            list(false),
            list(true)
        )
    }
}
