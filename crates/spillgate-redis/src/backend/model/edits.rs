use std::collections::HashMap;

use spillgate::Timestamp;

use crate::Name;
use crate::backend::edits::{EDIT_KEPT, EditPage, Lasts, MOST_EDITS, PAGE_OF_EDITS, SealedEdit};

/// The edits of all nodes, as the scripts keep them.
#[derive(Debug, Default)]
pub(super) struct Edits {
    history: u64,
    version: u64,
    by_name: HashMap<Name, KeptEdit>,
}

#[derive(Debug)]
struct KeptEdit {
    version: u64,
    /// `None` if it does not end.
    ends: Option<Timestamp>,
    sealed: Vec<u8>,
}

impl Edits {
    /// Stores edits. Returns false if there would be too many.
    pub(super) fn publish(&mut self, edits: &[SealedEdit], now: Timestamp) -> bool {
        self.purge(now);
        let mut added: Vec<_> = edits.iter().map(|edit| edit.name).collect();
        added.sort_unstable();
        added.dedup();
        added.retain(|name| !self.by_name.contains_key(name));
        if self.by_name.len() + added.len() > MOST_EDITS {
            return false;
        }
        if self.version == 0 {
            self.version = ((1 << 32) - now.as_nanos() / 1_000_000_000) << 20;
        }
        for edit in edits {
            self.version += 1;
            let ends = match edit.lasts {
                Lasts::Forever => None,
                Lasts::For(lasts) => Some(now + lasts),
                Lasts::Ended => Some(now),
            };
            let kept = KeptEdit { version: self.version, ends, sealed: edit.sealed.clone() };
            self.by_name.insert(edit.name, kept);
        }
        true
    }

    /// A page of the edits since a version.
    pub(super) fn since(&mut self, version: u64, now: Timestamp) -> EditPage {
        self.purge(now);
        let since = if version > self.version { 0 } else { version };
        let mut later: Vec<_> =
            self.by_name.iter().filter(|(_, edit)| edit.version > since).collect();
        later.sort_unstable_by_key(|(_, edit)| edit.version);
        later.truncate(PAGE_OF_EDITS);
        let has_more = later.len() == PAGE_OF_EDITS;
        let last = later.last().map(|(_, edit)| edit.version).filter(|_| has_more);
        let page = later.into_iter().map(|(name, edit)| SealedEdit {
            name: *name,
            lasts: match edit.ends {
                None => Lasts::Forever,
                Some(ends) if ends > now => Lasts::For(ends.since(now)),
                Some(_) => Lasts::Ended,
            },
            sealed: edit.sealed.clone(),
        });
        let version = last.unwrap_or(self.version);
        EditPage { history: self.history, version, has_more, edits: page.collect() }
    }

    /// Goes on as a replica that knows the edits up to a version.
    pub(super) fn fail_over(&mut self, version: u64) {
        self.by_name.retain(|_, edit| edit.version <= version);
        self.version = version;
        self.history += 1;
    }

    fn purge(&mut self, now: Timestamp) {
        self.by_name.retain(|_, edit| edit.ends.is_none_or(|ends| ends + EDIT_KEPT > now));
        if self.by_name.is_empty() {
            self.version = 0;
        }
    }
}
