//! The allow and block lists, which take precedence over limits.

use std::collections::HashSet;

use ipnet::IpNet;

use crate::policy::address::{Address, AddressSet, parse_range};
use crate::policy::identity::{Identifier, NamedBy, Sender, Who};
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

/// Both lists. Block takes precedence.
#[derive(Clone, Default)]
pub(crate) struct Lists {
    pub(crate) allow: List,
    pub(crate) block: List,
}

/// A set of addresses, API keys and users.
#[derive(Clone, Default)]
pub(crate) struct List {
    addresses: AddressSet,
    api_keys: HashSet<Box<[u8]>>,
    users: HashSet<Box<[u8]>>,
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
    pub(crate) fn list(&self, kind: ListKind) -> &List {
        match kind {
            ListKind::Allow => &self.allow,
            ListKind::Block => &self.block,
        }
    }

    pub(crate) fn list_mut(&mut self, kind: ListKind) -> &mut List {
        match kind {
            ListKind::Allow => &mut self.allow,
            ListKind::Block => &mut self.block,
        }
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
        let Self { allow, block } = self;
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
    pub(crate) fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut list = Self::default();
        let mut ranges = Vec::new();
        for entry in entries {
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

    /// Adds entries (`true`) and removes them (`false`), all at once.
    pub(crate) fn edit(&mut self, edits: impl IntoIterator<Item = (Entry, bool)>) {
        let mut ranges = Vec::new();
        for (entry, add) in edits {
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
