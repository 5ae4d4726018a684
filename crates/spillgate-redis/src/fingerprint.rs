use std::fmt;

use spillgate::Quota;
use spillgate_policy::store::LimitSpec;

use crate::Secret;

/// A fingerprint of a node's secret and policy, for nodes to compare.
///
/// Each half has 16 bits: different secrets or policies look the same once in 65,536 times, and a
/// reader learns at most 16 bits of a secret, each guess at the price of a slow hash. Policies are
/// hashed under the secret, so that only nodes with the same secret can compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint {
    /// Of the secret; zero if there is none.
    pub secret: u16,
    /// Of the limits: names, `per`, algorithms and quotas, in any order.
    pub policy: u16,
}

impl Fingerprint {
    const VERSION: u8 = 1;

    /// As announced.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 5] {
        let ([a, b], [c, d]) = (self.secret.to_be_bytes(), self.policy.to_be_bytes());
        [Self::VERSION, a, b, c, d]
    }

    /// An announced fingerprint; `None` if it is absent or of another version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [Self::VERSION, a, b, c, d] => {
                let (secret, policy) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                Some(Self { secret, policy })
            }
            _ => None,
        }
    }
}

/// Computes fingerprints under a secret.
pub(crate) struct Fingerprints {
    secret: u16,
    key: [u8; blake3::KEY_LEN],
}

/// Rounds of key stretching: some milliseconds per guess.
const ROUNDS: u32 = 1 << 16;

impl Fingerprints {
    /// Takes some milliseconds, unless there is no secret.
    pub(crate) fn new(secret: &Secret) -> Self {
        let is_public = *secret == Secret::public();
        let mut key = secret.fingerprint_key();
        for _ in 0..if is_public { 0 } else { ROUNDS } {
            key = *blake3::keyed_hash(&key, b"").as_bytes();
        }
        let secret = if is_public { 0 } else { first(&blake3::keyed_hash(&key, b"secret")).max(1) };
        Self { secret, key }
    }

    /// The fingerprint of a node with these limits.
    pub(crate) fn of(&self, limits: &[LimitSpec]) -> Fingerprint {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        let mut limits: Vec<_> = limits.iter().collect();
        limits.sort_by(|one, other| one.name.cmp(&other.name));
        count(&mut hasher, limits.len());
        limits.into_iter().for_each(|limit| add_limit(&mut hasher, limit));
        Fingerprint { secret: self.secret, policy: first(&hasher.finalize()) }
    }
}

impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprints(hidden)")
    }
}

fn first(hash: &blake3::Hash) -> u16 {
    let [a, b, ..] = *hash.as_bytes();
    u16::from_be_bytes([a, b])
}

/// What must be equal on all nodes. Lists are sorted and lengths included, so that no two limits
/// are the same text.
fn add_limit(hasher: &mut blake3::Hasher, limit: &LimitSpec) {
    for part in [limit.name.as_str(), &limit.per, limit.algorithm.name()] {
        text(hasher, part.as_bytes());
    }
    // A call's quota is not part of the policy, and permits are counted as no rate is.
    hasher.update(&[u8::from(limit.is_by_call) | u8::from(limit.hold.is_some()) << 1]);
    quota(hasher, &limit.quota);
    let mut tiers: Vec<_> = limit.tiers.iter().map(|(name, own)| (name.as_bytes(), own)).collect();
    // Those that end do so on one node before the other.
    let overrides = limit.overrides.iter().filter(|own| own.until.is_none());
    let mut overrides: Vec<_> = overrides.map(|own| (own.key.as_bytes(), &own.quota)).collect();
    for quotas in [&mut tiers, &mut overrides] {
        quotas.sort_by_key(|(name, _)| *name);
        count(hasher, quotas.len());
        for (name, own) in quotas.iter() {
            text(hasher, name);
            quota(hasher, own);
        }
    }
}

fn quota(hasher: &mut blake3::Hasher, quota: &Quota) {
    let period = quota.period().map_or(0, |period| period.as_nanos());
    let (amount, burst) = (quota.amount().to_le_bytes(), quota.burst().to_le_bytes());
    hasher.update(&amount).update(&period.to_le_bytes()).update(&burst);
}

fn text(hasher: &mut blake3::Hasher, text: &[u8]) {
    count(hasher, text.len());
    hasher.update(text);
}

fn count(hasher: &mut blake3::Hasher, count: usize) {
    hasher.update(&(count as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_says_is_not_read() {
        let own = Fingerprint { secret: 0x102, policy: 0x304 };
        assert_eq!(own.to_bytes(), [1, 1, 2, 3, 4]);
        assert_eq!(Fingerprint::from_bytes(&own.to_bytes()), Some(own));
        for other in [&[][..], &[1], &[2, 0, 0, 0, 0], &[1, 0, 0, 0, 0, 0]] {
            assert_eq!(Fingerprint::from_bytes(other), None);
        }
    }
}
