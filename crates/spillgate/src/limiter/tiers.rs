use std::sync::{Mutex, MutexGuard};

use crate::sync::lock_plain;
use crate::table::By;
use crate::{Error, Fingerprint, Quota};

/// Names the tier of a client, by its key.
///
/// Closures that return a fixed name are one. A client of no tier, or of one
/// that the limiter does not have, has the limiter's own quota. It is asked on
/// every check, so it should be quick.
///
/// A client has one allowance, whatever its tier. If that changes, what a bucket owes stays
/// owed in time: an upgrade gives the new rate at once, and the burst as it refills. Windows
/// and interval buckets keep their count.
pub trait TierOf<K: ?Sized>: Send + Sync {
    /// The name of the client's tier.
    fn tier_of<'a>(&'a self, key: &'a K) -> Option<&'a str>;
}

impl<K: ?Sized, F> TierOf<K> for F
where
    F: Fn(&K) -> Option<&'static str> + Send + Sync,
{
    fn tier_of<'a>(&'a self, key: &'a K) -> Option<&'a str> {
        self(key)
    }
}

/// A client, as the limiter's parts know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) fingerprint: Fingerprint,
    pub(super) tier: TierIndex,
}

/// Zero is the limiter's own quota, others count from one.
pub(super) type TierIndex = usize;

impl Client {
    /// A client of which only the fingerprint is known.
    pub(super) fn of_base(fingerprint: Fingerprint) -> Self {
        Self { fingerprint, tier: 0 }
    }

    /// What its word counts by.
    pub(super) fn by(self) -> By<'static> {
        self.tier.checked_sub(1).map_or(By::Base, By::Tier)
    }
}

/// The limiter's own quota, those of its tiers, and who has which.
pub(super) struct Tiers<K: ?Sized> {
    names: Vec<String>,
    /// The limiter's own first.
    quotas: Mutex<Vec<Quota>>,
    resolver: Option<Box<dyn TierOf<K>>>,
}

impl<K: ?Sized> Tiers<K> {
    pub(super) fn new(
        base: Quota,
        named: Vec<(String, Quota)>,
        resolver: Option<Box<dyn TierOf<K>>>,
    ) -> Result<Self, Error> {
        for (index, (name, _)) in named.iter().enumerate() {
            if named.iter().take(index).any(|(other, _)| other == name) {
                return Err(Error::tier(format!("the tier {name:?} is given twice; give it once")));
            }
        }
        if let (Some((name, _)), None) = (named.first(), &resolver) {
            return Err(Error::tier(format!(
                "nobody is in the tier {name:?}; say who is with `tier_of`"
            )));
        }
        let (names, quotas): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let quotas = Mutex::new([vec![base], quotas].concat());
        Ok(Self { names, quotas, resolver })
    }

    pub(super) fn are_some(&self) -> bool {
        !self.names.is_empty()
    }

    #[inline(always)]
    pub(super) fn tier_of(&self, key: &K) -> TierIndex {
        let Some(resolver) = &self.resolver else { return 0 };
        resolver.tier_of(key).and_then(|name| self.index(name)).unwrap_or(0)
    }

    /// The quotas, the limiter's own first. While they are held, none changes.
    pub(super) fn quotas(&self) -> MutexGuard<'_, Vec<Quota>> {
        lock_plain(&self.quotas)
    }

    /// The tier of that name.
    pub(super) fn named(&self, name: &str) -> Result<TierIndex, Error> {
        self.index(name).ok_or_else(|| {
            Error::tier(match &self.names[..] {
                [] => format!("there is no tier {name:?}; this limiter has none"),
                known => format!("there is no tier {name:?}; use one of {}", known.join(", ")),
            })
        })
    }

    // Tiers are few: comparing their names beats hashing them.
    fn index(&self, name: &str) -> Option<TierIndex> {
        self.names.iter().position(|known| known == name).map(|index| index + 1)
    }
}
