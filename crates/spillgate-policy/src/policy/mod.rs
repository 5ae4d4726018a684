//! A policy, checked and ready to be applied.

pub(crate) mod adaptive;
pub(crate) mod address;
pub(crate) mod ban;
pub(crate) mod client_ip;
pub(crate) mod identity;
pub(crate) mod lists;
pub(crate) mod part;
pub(crate) mod priority;
pub(crate) mod reads;
pub(crate) mod route;
pub(crate) mod rule;
pub(crate) mod settle;
pub(crate) mod terms;
pub(crate) mod tiers;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spillgate::KeyedState;

pub(crate) use self::part::{Part, per_text};
use self::priority::PriorityRules;
pub(crate) use self::rule::{Cost, Mismatch, Rule};
use self::tiers::Tiers;
use crate::config::PolicyBuilder;
use crate::envoy::Descriptors;
use crate::gate::Spends;
use crate::policy::identity::{Identifier, Sender, Who};
use crate::policy::lists::Lists;
use crate::policy::route::{CanonicalPath, PathSpelling, RequestPath, Routes, canonical_host};
use crate::store::Spend;
use crate::{Caller, Error, Key, Quota, RequestView};

/// Who is calling, whom to let through or refuse always, and which limits a request
/// meets.
///
/// A policy comes from a [file](Self::from_toml) or a [builder](Self::builder), which
/// can say the same things. One that exists is valid. A [`Gate`](crate::Gate) applies
/// it.
///
/// ```
/// use spillgate_policy::{Limit, Policy};
///
/// let policy = Policy::builder()
///     .limit(Limit::new("public", "10/s burst 20").path("/public/{*rest}"))
///     .build()?;
/// let same = Policy::from_toml(
///     r#"
///     [[limit]]
///     name = "public"
///     match = { path = "/public/{*rest}" }
///     quota = "10/s burst 20"
///     "#,
/// )?;
/// assert!(policy.limits().eq(same.limits()));
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
pub struct Policy {
    pub(crate) identifier: Identifier,
    pub(crate) lists: Arc<Lists>,
    pub(crate) rules: Vec<Rule>,
    /// The places of the rules by their names.
    pub(crate) places: HashMap<Arc<str>, usize, KeyedState>,
    pub(crate) routes: Routes<usize>,
    pub(crate) descriptors: Descriptors,
    /// The place of the limit for [`Throttle`](crate::Throttle) questions.
    pub(crate) throttle: Option<usize>,
    /// Which spellings of a path are alike.
    pub(crate) spelling: PathSpelling,
    /// True if any limit asks for the host.
    pub(crate) has_hosts: bool,
    /// True if any of these enforces.
    pub(crate) needs_host: bool,
    /// True if any limit asks for the path.
    pub(crate) has_paths: bool,
    /// True if no limit delays, settles, or is in shadow.
    pub(crate) is_plain: bool,
    /// True if any limit is on concurrency, and its permits are the store's.
    pub(crate) has_holds: bool,
    /// True if any limit follows load.
    pub(crate) has_adaptive: bool,
    /// True if any limit is on concurrency, bans, or follows load: then rates are not all that a
    /// request is decided by.
    pub(crate) has_more_than_rates: bool,
    pub(crate) tiers: Tiers,
    /// How much requests matter; `None` if all matter the same.
    pub(crate) priorities: Option<Box<PriorityRules>>,
}

impl Policy {
    /// A policy to be built.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// Reads a policy from the text of a file. Files that it names are looked for in the
    /// working directory.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in it, with line, reason and what would be right.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        PolicyBuilder::read(text, None)?.build()
    }

    /// Reads a policy from a text, as [`from_toml`](Self::from_toml) does. Files that it
    /// names are looked for in a folder.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in it, with line, reason and what would be right.
    pub fn from_toml_in(text: &str, folder: impl Into<PathBuf>) -> Result<Self, Error> {
        PolicyBuilder::from_toml_in(text, folder)?.build()
    }

    /// Reads a policy from a file. Files that it names are relative to its folder.
    ///
    /// # Errors
    ///
    /// If the file cannot be read; or everything that is wrong in it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        PolicyBuilder::load(path)?.build()
    }

    /// The names of the limits, in the order of the file.
    pub fn limits(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.name.as_ref())
    }

    /// The domains that have limits for descriptors, in no particular order.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.descriptors.names()
    }

    /// How many values name a caller of a limit: one for each part of its `per`, so none if
    /// it is `global`. `None` if there is no such limit.
    #[must_use]
    pub fn parts(&self, limit: &str) -> Option<usize> {
        self.rule(limit).map(|place| self.rules[place].per.len())
    }

    /// What a limit is counted per, as the file writes it: `caller`, or `ip, path:id`. `None` if
    /// there is no such limit.
    #[must_use]
    pub fn per(&self, limit: &str) -> Option<&str> {
        self.rule(limit).map(|place| self.rules[place].spec.per.as_str())
    }

    /// How long permits of a [concurrency limit](crate::Limit::concurrent) live without a sign of
    /// life of their holder. `None` if there is no such limit, or it is not on concurrency.
    #[must_use]
    pub fn permit_ttl(&self, limit: &str) -> Option<Duration> {
        let rule = self.rule(limit).map(|place| &self.rules[place]);
        rule.filter(|rule| rule.is_hold)?.spec.hold.map(|hold| hold.ttl)
    }

    /// True if the policy names this address as a proxy that may speak for its clients.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.identifier.trusted.contains(address.into())
    }

    /// Who sends a request, as the limits of this policy count callers: an address is cut to its
    /// prefix.
    #[must_use]
    pub fn caller<'r>(&self, request: &RequestView<'r>) -> Caller<'r> {
        match self.identifier.sender(request).who {
            Who::Named(caller) => caller,
            Who::At(address) => Caller::Ip(address.into()),
            Who::Nobody => Caller::Anonymous,
        }
    }

    /// True if there is an [adaptive](crate::Limit::adaptive) limit.
    #[must_use]
    pub fn has_adaptive_limits(&self) -> bool {
        self.has_adaptive
    }

    /// Adds a spend for every limit that a request meets: enforced ones first, then those in
    /// shadow mode; of each, those that most callers share last.
    ///
    /// False if there are limits for hosts, and the request has no clear host.
    #[must_use]
    pub(crate) fn spend(
        &self,
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        spends: &mut Spends,
    ) -> bool {
        let host = if self.has_hosts { request.host().and_then(canonical_host) } else { None };
        if self.needs_host && host.is_none() {
            return false;
        }
        let tier = self.tiers.of(request, sender, &self.identifier);
        let mut charge_path = |path: Option<&CanonicalPath<'_>>| {
            self.routes.for_each(host.as_deref(), path, &mut |place| {
                let rule = &self.rules[*place];
                if rule.mismatch(request).is_some() {
                    return;
                }
                let cost = rule.cost(request, sender.from_trusted);
                if spends.len() == 1 {
                    // Requests that meet two limits often meet more.
                    spends.reserve(3);
                }
                // The key is written where it stays: it is too large to be moved for nothing.
                spends.push(Spend::new(*place, Key::global(), cost).in_mode(rule.mode));
                let Some(Spend { key, .. }) = spends.last_mut() else { return };
                rule.write_key(key, request, sender, &self.identifier, path);
                key.tier = rule.tier_place(tier);
            });
        };
        let path = if self.has_paths { self.path(request) } else { None };
        match &path {
            None => charge_path(None),
            Some(path) => path.readings().for_each(|path| charge_path(Some(path))),
        }
        if spends.len() > 1 {
            // A limit may have been found by several patterns, or several readings of the path,
            // of which the first counts.
            spends.sort_by_key(|spend| spend.limit);
            spends.dedup_by_key(|spend| spend.limit);
            spends.sort_by_key(|spend| self.rules[spend.limit].turn());
        }
        true
    }

    /// The path of a request, if it can be understood.
    pub(crate) fn path<'r>(&self, request: &RequestView<'r>) -> Option<RequestPath<'r>> {
        RequestPath::of(request.path(), &self.spelling)
    }

    pub(crate) fn tier_name(&self, request: &RequestView<'_>, sender: &Sender<'_>) -> Option<&str> {
        let tier = self.tiers.of(request, sender, &self.identifier)?;
        self.tiers.names.get(tier).map(String::as_str)
    }

    /// The place here of the limit of another policy's spend, and the key, if it still counts the
    /// same things.
    pub(crate) fn place_of(&self, earlier: &Self, spend: &Spend) -> Option<(usize, Key)> {
        let key = spend.key.clone();
        if std::ptr::eq(self, earlier) {
            return Some((spend.limit, key));
        }
        let old = &earlier.rules[spend.limit];
        self.still(&old.name, old.since, key, old.tier_name(&spend.key))
    }

    /// The place of a limit, and a key of it for a caller of a tier, if it has counted the
    /// same things since then.
    pub(crate) fn still(
        &self,
        limit: &str,
        since: u32,
        mut key: Key,
        tier: Option<&str>,
    ) -> Option<(usize, Key)> {
        let place = self.rule(limit)?;
        let rule = &self.rules[place];
        let same = |(name, _): &(String, Quota)| tier == Some(name);
        key.tier = rule.spec.tiers.iter().position(same).map_or(0, |tier| tier as u16 + 1);
        (rule.since == since).then_some((place, key))
    }

    /// The tier of the caller whom the values of a limit's parts name, among the limit's.
    pub(crate) fn tier_place(&self, place: usize, values: &[&str]) -> u16 {
        let rule = &self.rules[place];
        rule.tier_place(self.tiers.named(&rule.per, values, &self.identifier))
    }

    pub(crate) fn rule(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }
}

debug_fields!(self: Policy {
    limits: self.limits().collect::<Vec<_>>(),
    identity: self.identifier,
});
