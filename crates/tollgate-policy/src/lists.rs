//! Callers who are let through or refused whatever the limits say.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::address::{AddressSet, parse_range};
use crate::identity::{Identifier, NamedBy, Sender};
use crate::{Caller, Request};

/// Which of the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// Callers who are never limited.
    Allow,
    /// Callers who are always refused.
    Block,
}

/// Both lists. Whoever is on both is refused.
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

impl Entry {
    /// The text that [`parse`](Self::parse) reads. It may hold a secret.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Range(range) => range.to_string(),
            Self::ApiKey(key) => format!("key:{}", String::from_utf8_lossy(key)),
            Self::User(user) => format!("user:{}", String::from_utf8_lossy(user)),
        }
    }
}

const UNKNOWN: &str = "write an address, a range such as \"192.0.2.0/24\", \"key:NAME\" or \
                       \"user:NAME\"";

impl Entry {
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
        request: &Request<'_>,
        sender: &Sender<'_>,
        identifier: &Identifier,
    ) -> Option<ListKind> {
        let Identifier { api_key, user, .. } = identifier;
        // A key that is claimed is enough to be refused; to be let through, it must be
        // accepted.
        let claimed = |named_by: &NamedBy| named_by.claimed(request);
        let accepted = |named_by: &NamedBy| named_by.accepted(request, sender.from_trusted);
        if self.block.holds(sender, || claimed(api_key), || claimed(user)) {
            Some(ListKind::Block)
        } else if self.allow.holds(sender, || accepted(api_key), || accepted(user)) {
            Some(ListKind::Allow)
        } else {
            None
        }
    }
}

impl List {
    /// Many entries at once.
    pub(crate) fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut list = Self::default();
        let mut ranges = Vec::new();
        for entry in entries {
            match entry {
                Entry::Range(range) => ranges.push(range),
                other => {
                    list.insert(other);
                }
            }
        }
        list.addresses = ranges.into_iter().collect();
        list
    }

    /// The narrowest range that holds an address.
    pub(crate) fn range(&self, address: IpAddr) -> Option<IpNet> {
        self.addresses.find(address)
    }

    /// Adds an entry, and tells whether it is new.
    pub(crate) fn insert(&mut self, entry: Entry) -> bool {
        match entry {
            Entry::Range(range) => self.addresses.insert(range),
            Entry::ApiKey(key) => self.api_keys.insert(key),
            Entry::User(user) => self.users.insert(user),
        }
    }

    /// Removes an entry, and tells whether it was there.
    pub(crate) fn remove(&mut self, entry: &Entry) -> bool {
        match entry {
            Entry::Range(range) => self.addresses.remove(range),
            Entry::ApiKey(key) => self.api_keys.remove(key),
            Entry::User(user) => self.users.remove(user),
        }
    }

    /// True if the sender is listed: by address, by what it gives as API key or user, or
    /// by whom a closure takes it for.
    fn holds<'r>(
        &self,
        sender: &Sender<'_>,
        api_key: impl Fn() -> Option<&'r [u8]>,
        user: impl Fn() -> Option<&'r [u8]>,
    ) -> bool {
        let is_in = |set: &HashSet<Box<[u8]>>, value: Option<&[u8]>| {
            value.is_some_and(|value| set.contains(value))
        };
        let (named_key, named_user) = match &sender.caller {
            Caller::ApiKey(key) => (Some(key.as_ref()), None),
            Caller::User(user) => (None, Some(user.as_ref())),
            Caller::Ip(_) | Caller::Anonymous => (None, None),
        };
        let (keys, users) = (&self.api_keys, &self.users);
        sender.client.is_some_and(|client| self.addresses.contains(client.address))
            || (!keys.is_empty() && (is_in(keys, api_key()) || is_in(keys, named_key)))
            || (!users.is_empty() && (is_in(users, user()) || is_in(users, named_user)))
    }
}
