//! The allow and block lists, which take precedence over limits.

use std::collections::{HashMap, HashSet};

use ipnet::IpNet;
use spillgate::Timestamp;

use crate::policy::address::{Address, AddressSet, parse_range};
use crate::policy::identity::{Identifier, NamedBy, Sender, Who};
use crate::policy::terms::Terms;
use crate::{Caller, RequestView};

/// Which of the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ListKind {
    /// Callers who are never limited.
    Allow,
    /// Callers who are always refused.
    Block,
}

impl ListKind {
    pub(crate) const BOTH: [Self; 2] = [Self::Allow, Self::Block];

    /// `allow` or `block`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block => "block",
        }
    }
}

/// Both lists. Block takes precedence.
#[derive(Clone, Default)]
pub(crate) struct Lists {
    allow: List,
    block: List,
    /// When the first entry ends, if one does. Until then a lookup needs no clock.
    next_expiry: Option<Timestamp>,
}

/// A set of addresses, API keys and users.
#[derive(Clone, Default)]
pub(crate) struct List {
    addresses: AddressSet,
    api_keys: HashSet<Box<[u8]>>,
    users: HashSet<Box<[u8]>>,
    /// Those of the entries that have any.
    terms: HashMap<Entry, Terms>,
}

/// One entry of a list.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Range(IpNet),
    ApiKey(Box<[u8]>),
    User(Box<[u8]>),
}

const UNKNOWN: &str = "write an address, a range such as \"192.0.2.0/24\", \"key:NAME\" or \
                       \"user:NAME\"";

impl Entry {
    /// The text that [`parse`](Self::parse) reads. It may hold a secret.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Range(range) => range.to_string(),
            Self::ApiKey(key) => format!("key:{}", String::from_utf8_lossy(key)),
            Self::User(user) => format!("user:{}", String::from_utf8_lossy(user)),
        }
    }

    /// An entry from its text: an address, a range, `key:NAME`, `user:NAME`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let address = text.strip_prefix("ip:").unwrap_or(text);
        // What does not look like an address may be a secret, so it is not shown.
        let looks_like_one = |byte: u8| byte.is_ascii_hexdigit() || b".:/".contains(&byte);
        if address.bytes().all(looks_like_one) && address.contains(['.', ':']) {
            return parse_range(address).map(Self::Range);
        }
        let is_named = ["key:", "api-key:", "user:"].iter().any(|kind| text.starts_with(kind));
        if !is_named {
            return Err(UNKNOWN.to_owned());
        }
        Ok(match Caller::parse(text)? {
            Caller::User(user) => Self::User(user.into_owned().into()),
            Caller::ApiKey(key) => Self::ApiKey(key.into_owned().into()),
            Caller::Ip(_) | Caller::Anonymous => return Err(UNKNOWN.to_owned()),
        })
    }
}

impl Lists {
    pub(crate) fn new(allow: List, block: List) -> Self {
        let mut lists = Self { allow, block, next_expiry: None };
        lists.next_expiry = lists.earliest();
        lists
    }

    pub(crate) fn list(&self, kind: ListKind) -> &List {
        match kind {
            ListKind::Allow => &self.allow,
            ListKind::Block => &self.block,
        }
    }

    /// Adds entries with their terms, and removes them (`None`), all at once.
    pub(crate) fn edit(
        &mut self,
        kind: ListKind,
        edits: impl IntoIterator<Item = (Entry, Option<Terms>)>,
    ) {
        match kind {
            ListKind::Allow => self.allow.edit(edits),
            ListKind::Block => self.block.edit(edits),
        }
        self.next_expiry = self.earliest();
    }

    /// True if an entry has ended that is still found. The clock is read only if one may have.
    #[inline]
    pub(crate) fn are_due(&self, now: impl FnOnce() -> Timestamp) -> bool {
        self.next_expiry.is_some_and(|next| next <= now())
    }

    /// Takes out the entries that have ended.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        for kind in ListKind::BOTH {
            let over = self.list(kind).terms.iter().filter(|(_, terms)| terms.is_over(now));
            let over: Vec<_> = over.map(|(entry, _)| (entry.clone(), None)).collect();
            self.edit(kind, over);
        }
    }

    fn earliest(&self) -> Option<Timestamp> {
        let terms = [&self.allow, &self.block].into_iter().flat_map(|list| list.terms.values());
        terms.filter_map(|terms| terms.until).min()
    }

    /// The list that decides about a request, if one does.
    pub(crate) fn find(
        &self,
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        identifier: &Identifier,
    ) -> Option<ListKind> {
        let Identifier { api_key, user, .. } = identifier;
        // A key that is claimed, however often, is enough to be refused; to be let
        // through, it must be accepted.
        let blocks = |named_by: &NamedBy, set: &HashSet<Box<[u8]>>| {
            !set.is_empty() && named_by.claims(request).any(|value| set.contains(value))
        };
        let allows = |named_by: &NamedBy, set: &HashSet<Box<[u8]>>| {
            let accepted = || named_by.accepted(request, sender.from_trusted);
            !set.is_empty() && accepted().is_some_and(|value| set.contains(value))
        };
        let Self { allow, block, .. } = self;
        if allow.is_empty() && block.is_empty() {
            return None;
        }
        if block.holds(sender) || blocks(api_key, &block.api_keys) || blocks(user, &block.users) {
            Some(ListKind::Block)
        } else if allow.holds(sender)
            || allows(api_key, &allow.api_keys)
            || allows(user, &allow.users)
        {
            Some(ListKind::Allow)
        } else {
            None
        }
    }
}

impl List {
    /// Of an entry that is there twice, the terms that end later count.
    pub(crate) fn new(entries: impl IntoIterator<Item = (Entry, Terms)>) -> Self {
        let mut list = Self::default();
        let (plain, others): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(_, terms)| terms.is_default());
        for (entry, terms) in others {
            let terms = match list.terms.remove(&entry) {
                Some(other) => other.later(terms),
                None => terms,
            };
            list.terms.insert(entry, terms);
        }
        // Lists are long, and few entries have terms.
        if list.terms.values().any(|terms| terms.until.is_some()) {
            for (entry, _) in &plain {
                if list.terms.get(entry).is_some_and(|terms| terms.until.is_some()) {
                    list.terms.remove(entry);
                }
            }
        }
        let with_terms: Vec<_> = list.terms.keys().cloned().collect();
        let mut ranges = Vec::new();
        for entry in plain.into_iter().map(|(entry, _)| entry).chain(with_terms) {
            match entry {
                Entry::Range(range) => ranges.push(range),
                Entry::ApiKey(key) => drop(list.api_keys.insert(key)),
                Entry::User(user) => drop(list.users.insert(user)),
            }
        }
        // Collected and sorted once, which is faster than to insert one by one.
        list.addresses = ranges.into_iter().collect();
        list
    }

    fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.api_keys.is_empty() && self.users.is_empty()
    }

    /// The narrowest range that holds an address.
    pub(crate) fn range(&self, address: Address) -> Option<IpNet> {
        self.addresses.find(address)
    }

    /// True if the very entry is there.
    pub(crate) fn has(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Range(range) => self.addresses.has(range),
            Entry::ApiKey(key) => self.api_keys.contains(key),
            Entry::User(user) => self.users.contains(user),
        }
    }

    /// Every entry: ranges in their order, then keys, then users.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        let ranges = self.addresses.entries().map(Entry::Range);
        let keys = self.api_keys.iter().cloned().map(Entry::ApiKey);
        ranges.chain(keys).chain(self.users.iter().cloned().map(Entry::User))
    }

    /// The terms of an entry that is there; `None` if it is not, or has ended.
    pub(crate) fn terms_at(&self, entry: &Entry, now: Timestamp) -> Option<Terms> {
        let terms = self.has(entry).then(|| self.terms.get(entry).cloned().unwrap_or_default())?;
        (!terms.is_over(now)).then_some(terms)
    }

    /// The entries that both lists have, with other terms.
    pub(crate) fn terms_that_differ(&self, other: &Self) -> Vec<Entry> {
        let has = |entry: &&Entry| self.has(entry) && other.has(entry);
        let own =
            self.terms.keys().filter(|entry| other.terms.get(*entry) != self.terms.get(*entry));
        let others = other.terms.keys().filter(|entry| !self.terms.contains_key(*entry));
        own.chain(others).filter(has).cloned().collect()
    }

    fn edit(&mut self, edits: impl IntoIterator<Item = (Entry, Option<Terms>)>) {
        let mut ranges = Vec::new();
        for (entry, terms) in edits {
            let add = terms.is_some();
            match terms.filter(|terms| !terms.is_default()) {
                Some(terms) => drop(self.terms.insert(entry.clone(), terms)),
                None => drop(self.terms.remove(&entry)),
            }
            match entry {
                Entry::Range(range) => ranges.push((range, add)),
                Entry::ApiKey(key) if add => drop(self.api_keys.insert(key)),
                Entry::ApiKey(key) => drop(self.api_keys.remove(&key)),
                Entry::User(user) if add => drop(self.users.insert(user)),
                Entry::User(user) => drop(self.users.remove(&user)),
            }
        }
        self.addresses.edit(ranges);
    }

    /// True if a caller is listed, by address or by name.
    pub(crate) fn has_caller(&self, caller: &Caller<'_>) -> bool {
        match caller {
            Caller::ApiKey(key) => self.api_keys.contains(key.as_ref()),
            Caller::User(user) => self.users.contains(user.as_ref()),
            Caller::Ip(address) => self.addresses.contains((*address).into()),
            Caller::Anonymous => false,
        }
    }

    /// True if the sender is listed, by address or as the caller it is taken for.
    fn holds(&self, sender: &Sender<'_>) -> bool {
        let by_name = match &sender.who {
            Who::Named(Caller::ApiKey(key)) => self.api_keys.contains(key.as_ref()),
            Who::Named(Caller::User(user)) => self.users.contains(user.as_ref()),
            Who::Named(_) | Who::At(_) | Who::Nobody => false,
        };
        by_name || sender.client.is_some_and(|client| self.addresses.contains(client.address))
    }
}
