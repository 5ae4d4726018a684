use std::sync::Mutex;

use crate::algorithm::{AlgorithmKind, AnyAlgorithm, Start};
use crate::sync::lock_plain;
use crate::{Error, Fingerprint, Quota, Table, Timestamp, WhenFull};

/// Names the tier of a client, by its key.
///
/// Closures that return a fixed name are one. A client of no tier, or of one
/// that the limiter does not have, has the limiter's own quota. It is asked on
/// every check, so it should be quick. A client whose tier changes starts afresh
/// in the new one.
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

/// The limiter's own quota and table, and those of each tier.
pub(super) struct Tiers<K: ?Sized, S> {
    base: Tier<S>,
    named: Vec<(String, Tier<S>)>,
    resolver: Option<Box<dyn TierOf<K>>>,
}

/// A quota and the table of the clients that have it.
pub(super) struct Tier<S> {
    table: Table<S>,
    quota: Mutex<Quota>,
}

/// What all tiers of a limiter have in common.
pub(super) struct Common<S> {
    pub(super) kind: AlgorithmKind,
    pub(super) start: Start,
    pub(super) born: Timestamp,
    pub(super) when_full: WhenFull,
    pub(super) hasher: S,
}

impl<S: Clone> Common<S> {
    pub(super) fn tier(&self, quota: Quota, capacity: usize) -> Result<Tier<S>, Error> {
        let algorithm = self.kind.with_quota(&quota, self.start, self.born)?;
        let table = Table::with_hasher(algorithm, capacity, self.when_full, self.hasher.clone())?;
        Ok(Tier { table, quota: Mutex::new(quota) })
    }
}

impl<S> Tier<S> {
    pub(super) fn quota(&self) -> Quota {
        *lock_plain(&self.quota)
    }

    pub(super) fn table(&self) -> &Table<S> {
        &self.table
    }

    /// Changes the quota; `algorithm` makes of it what the words mean.
    pub(super) fn set_quota(&self, quota: Quota, algorithm: AnyAlgorithm, now: Timestamp) {
        // Held for the whole change: the quota told is the one in force.
        let mut current = lock_plain(&self.quota);
        self.table.set_algorithm_at(algorithm, now);
        *current = quota;
    }
}

impl<K: ?Sized, S> Tiers<K, S> {
    pub(super) fn new(
        base: Tier<S>,
        named: Vec<(String, Tier<S>)>,
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
        Ok(Self { base, named, resolver })
    }

    #[inline(always)]
    pub(super) fn base(&self) -> &Table<S> {
        &self.base.table
    }

    #[inline(always)]
    pub(super) fn tier_of(&self, key: &K) -> TierIndex {
        let Some(resolver) = &self.resolver else { return 0 };
        resolver.tier_of(key).and_then(|name| self.index(name)).unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn table(&self, tier: TierIndex) -> &Table<S> {
        &self.tier(tier).table
    }

    pub(super) fn quota(&self, tier: TierIndex) -> Quota {
        self.tier(tier).quota()
    }

    #[inline(always)]
    fn tier(&self, tier: TierIndex) -> &Tier<S> {
        match tier.checked_sub(1).and_then(|index| self.named.get(index)) {
            None => &self.base,
            Some((_, tier)) => tier,
        }
    }

    /// The tier of that name, or the limiter's own for no name.
    pub(super) fn named(&self, name: Option<&str>) -> Result<&Tier<S>, Error> {
        let Some(name) = name else {
            return Ok(&self.base);
        };
        let index = self.index(name).ok_or_else(|| {
            let known: Vec<_> = self.named.iter().map(|(name, _)| name.as_str()).collect();
            Error::tier(match known.as_slice() {
                [] => format!("there is no tier {name:?}; this limiter has none"),
                known => format!("there is no tier {name:?}; use one of {}", known.join(", ")),
            })
        })?;
        Ok(self.tier(index))
    }

    /// Every tier with its name, the limiter's own first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<&str>, &Tier<S>)> {
        let named = self.named.iter().map(|(name, tier)| (Some(name.as_str()), tier));
        std::iter::once((None, &self.base)).chain(named)
    }

    // Tiers are few: comparing their names beats hashing them.
    fn index(&self, name: &str) -> Option<TierIndex> {
        self.named.iter().position(|(known, _)| known == name).map(|index| index + 1)
    }
}
