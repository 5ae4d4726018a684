use std::fmt;

use spillgate::AlgorithmKind;
use spillgate_policy::Error;

/// The name of a caller or limit in Redis: a hash, under the secret of the nodes, of the limit and
/// the key.
///
/// 128 bits, so that names do not collide by chance, and API keys cannot be read from Redis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name([u8; 16]);

impl Name {
    /// A name of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    fn of(hash: blake3::Hash) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        Self(bytes)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({self})")
    }
}

/// The secret under which nodes hash the keys of callers. Nodes with different secrets share
/// nothing.
///
/// Without one ([`Secret::public`]), anybody who can read Redis can test guesses of keys: addresses
/// and weak API keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; blake3::KEY_LEN]);

/// 16 random bytes cannot be guessed.
const SHORTEST: usize = 16;

/// The purpose of the derived key. Another text would give other names.
const CONTEXT: &str = "spillgate-redis 2026-11-15 names of callers";

const FINGERPRINTS: &str = "spillgate-redis 2026-11-16 fingerprints of nodes";

const EDITS: &str = "spillgate-redis 2026-11-16 encryption of edits";

impl Secret {
    /// A secret of any text of at least 16 bytes.
    ///
    /// # Errors
    ///
    /// If it is shorter.
    pub fn new(text: impl AsRef<[u8]>) -> Result<Self, Error> {
        let text = text.as_ref();
        if text.len() < SHORTEST {
            return Err(Error::store(format!(
                "the cluster's secret has {} bytes; use at least {SHORTEST}, random ones, the \
                 same on every node",
                text.len()
            )));
        }
        Ok(Self(blake3::derive_key(CONTEXT, text)))
    }

    /// No secret.
    #[must_use]
    pub fn public() -> Self {
        Self(blake3::derive_key(CONTEXT, b""))
    }

    /// The key for [fingerprints](crate::Fingerprint); nothing else is hashed under it.
    pub(crate) fn fingerprint_key(&self) -> [u8; blake3::KEY_LEN] {
        blake3::derive_key(FINGERPRINTS, &self.0)
    }

    /// The key that encrypts edits; nothing else is encrypted under it.
    pub(crate) fn edit_key(&self) -> [u8; blake3::KEY_LEN] {
        blake3::derive_key(EDITS, &self.0)
    }

    /// Names of edits by what they change.
    pub(crate) fn edits(&self) -> Names {
        self.names_of(&["edits"])
    }

    /// Names of the callers of a limit: by its name, what it counts by, and its algorithm.
    pub(crate) fn names(&self, limit: &str, per: &str, kind: AlgorithmKind) -> Names {
        self.names_of(&[limit, per, kind.name()])
    }

    /// Names of reservations by their ids: who reads a name cannot settle it.
    pub(crate) fn deposits(&self) -> Names {
        self.names_of(&["deposits"])
    }

    fn names_of(&self, limit: &[&str]) -> Names {
        let hash = |purpose: &str| {
            let mut hasher = blake3::Hasher::new_keyed(&self.0);
            // With their lengths, so that no two lists are the same text.
            for part in [purpose].iter().chain(limit) {
                hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
            }
            hasher.finalize()
        };
        Names { key: *hash("callers").as_bytes(), limit: Name::of(hash("limit")) }
    }
}

impl Default for Secret {
    fn default() -> Self {
        Self::public()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// Hashes the callers of one limit.
pub(crate) struct Names {
    /// A key per limit, so that a short key is hashed in one step.
    key: [u8; blake3::KEY_LEN],
    limit: Name,
}

impl Names {
    pub(crate) fn caller(&self, key: &[u8]) -> Name {
        Name::of(blake3::keyed_hash(&self.key, key))
    }

    pub(crate) fn limit(&self) -> Name {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const BUCKET: AlgorithmKind = AlgorithmKind::TokenBucket;

    #[test]
    fn whatever_differs_has_another_name() {
        let secret = Secret::new("sixteen bytes it is").unwrap();
        let window = AlgorithmKind::FixedWindow;
        let limits = [
            Secret::public().names("api", "caller", BUCKET),
            secret.names("api", "caller", BUCKET),
            secret.names("api", "caller", window),
            secret.names("api", "user", BUCKET),
            secret.names("apic", "aller", BUCKET),
        ];
        let keys = [&b"alice"[..], b"bob", b"", b"alice\0"];
        let callers = limits.iter().flat_map(|names| keys.map(|key| names.caller(key)));
        let names: HashSet<_> = callers.chain(limits.iter().map(Names::limit)).collect();
        assert_eq!(names.len(), limits.len() * (keys.len() + 1));
    }

    /// Were they others, everyone would start afresh with the next version.
    #[test]
    fn names_are_the_same_from_version_to_version() {
        let names = Secret::new("sixteen bytes it is").unwrap().names("api", "caller", BUCKET);
        assert_eq!(names.caller(b"alice").to_string(), "2b8b2bfa80e229292eedfec3f6fd58e1");
        assert_eq!(names.limit().to_string(), "c39c76111208c3ca75b949d133c4e587");
    }

    #[test]
    fn a_short_secret_is_refused_and_none_is_shown() {
        let error = Secret::new("too short").unwrap_err().to_string();
        assert!(error.contains("has 9 bytes; use at least 16"), "{error}");
        assert_eq!(format!("{:?}", Secret::public()), "Secret(hidden)");
    }
}
