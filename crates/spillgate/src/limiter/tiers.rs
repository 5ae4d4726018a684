use std::sync::{Mutex, MutexGuard};

use crate::sync::lock_plain;
use crate::table::{By, MOST_TIERS};
use crate::{Error, Fingerprint, Quota};

/// Returns the name of a caller's tier, by its key.
///
/// Implemented for closures that return a static name. A caller without a tier, or with one
/// that the limiter does not have, has the limiter's own quota. Called on every check, so it
/// should be fast.
///
/// A caller has one allowance, whatever its tier: what it has spent stays spent, in tokens, when
/// its tier changes.
pub trait TierOf<K: ?Sized>: Send + Sync {
    /// The name of the caller's tier.
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

/// A caller, as the parts of a limiter identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) fingerprint: Fingerprint,
    pub(super) tier: TierIndex,
}

/// Zero is the limiter's own quota, others count from one.
pub(super) type TierIndex = usize;

impl Caller {
    /// A caller of the limiter's own quota.
    pub(super) fn of_base(fingerprint: Fingerprint) -> Self {
        Self { fingerprint, tier: 0 }
    }

    /// The rule of its word.
    pub(super) fn by(self) -> By<'static> {
        By::of_tier(self.tier)
    }
}

/// All quotas, which do not change while this is held.
pub(super) type Quotas<'t> = MutexGuard<'t, Vec<Quota>>;

/// The limiter's own quota, its tiers, and the function that assigns them.
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
                return Err(Error::tier(format!("duplicate tier {name:?}; define it once")));
            }
        }
        if let Some((name, _)) = named.get(MOST_TIERS) {
            return Err(Error::tier(format!(
                "there is no room for tier {name:?}: a limiter has at most {MOST_TIERS}"
            )));
        }
        if let (Some((name, _)), None) = (named.first(), &resolver) {
            return Err(Error::tier(format!(
                "no caller can be in tier {name:?}; assign tiers with `tier_of`"
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
        self.resolver.as_ref().map_or(0, |resolver| self.resolve(&**resolver, key))
    }

    /// Out of line: with it in every check, those without tiers take 3 % more instructions.
    #[inline(never)]
    fn resolve(&self, resolver: &dyn TierOf<K>, key: &K) -> TierIndex {
        resolver.tier_of(key).and_then(|name| self.index(name)).unwrap_or(0)
    }

    /// The quotas, the limiter's own first. While they are held, none changes.
    pub(super) fn quotas(&self) -> Quotas<'_> {
        lock_plain(&self.quotas)
    }

    /// The tier of that name.
    pub(super) fn named(&self, name: &str) -> Result<TierIndex, Error> {
        self.index(name).ok_or_else(|| {
            Error::tier(match &self.names[..] {
                [] => format!("unknown tier {name:?}; this limiter has none"),
                known => format!("unknown tier {name:?}; use one of {}", known.join(", ")),
            })
        })
    }

    /// The tier of a name that was saved: the limiter's own quota if there is none of that name.
    pub(super) fn saved(&self, name: Option<&str>) -> TierIndex {
        name.and_then(|name| self.index(name)).unwrap_or(0)
    }

    /// The name of a tier.
    pub(super) fn name(&self, tier: TierIndex) -> Option<String> {
        tier.checked_sub(1).and_then(|index| self.names.get(index)).cloned()
    }

    // Tiers are few: comparing their names beats hashing them.
    fn index(&self, name: &str) -> Option<TierIndex> {
        self.names.iter().position(|known| known == name).map(|index| index + 1)
    }
}
