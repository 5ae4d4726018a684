use std::fmt;

use spillgate::AlgorithmKind;
use spillgate_policy::Error;

/// Whom a state is of: a hash, under a secret that the nodes share, of a limit and of whom
/// it counts.
///
/// 128 bits, so that no two callers meet by chance, and nobody who can read Redis
/// reads an API key there.
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

/// What the nodes of a cluster hash callers under, the same on every node: nodes with
/// different secrets share nothing.
///
/// Without one ([`Secret::public`]), whoever can read Redis and guess a caller's key
/// can tell whether that caller is there, and so learns addresses and weak keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; blake3::KEY_LEN]);

/// The fewest bytes of a secret: of 16 random ones, nobody tries all.
const SHORTEST: usize = 16;

/// What secrets are made for. Another text would give other names.
const CONTEXT: &str = "spillgate-redis 2026-11-15 names of callers";

/// The same of what is made for fingerprints.
const FINGERPRINTS: &str = "spillgate-redis 2026-11-16 fingerprints of nodes";

impl Secret {
    /// A secret of any text, of at least 16 bytes.
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

    /// No secret: everybody knows it.
    #[must_use]
    pub fn public() -> Self {
        Self(blake3::derive_key(CONTEXT, b""))
    }

    /// What [fingerprints](crate::Fingerprint) begin with: nothing else is hashed under it.
    pub(crate) fn fingerprint_key(&self) -> [u8; blake3::KEY_LEN] {
        blake3::derive_key(FINGERPRINTS, &self.0)
    }

    /// How the callers of a limit are named: by its own name, what it counts apart, and how.
    pub(crate) fn names(&self, limit: &str, per: &str, kind: AlgorithmKind) -> Names {
        self.names_of(&[limit, per, kind.name()])
    }

    /// How buckets are named that belong to no limit.
    pub(crate) fn throttled(&self) -> Names {
        self.names_of(&[])
    }

    /// How what was spent in advance is named, by ids: who reads a name cannot settle it.
    pub(crate) fn deposits(&self) -> Names {
        self.names_of(&["deposits"])
    }

    fn names_of(&self, limit: &[&str]) -> Names {
        let hash = |purpose: &str| {
            let mut hasher = blake3::Hasher::new_keyed(&self.0);
            // Each with its length, so that no two lists of parts are one text.
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

/// Names the callers of one limit.
pub(crate) struct Names {
    /// The limit has a key of its own, so that a short caller is hashed in one step.
    key: [u8; blake3::KEY_LEN],
    limit: Name,
}

impl Names {
    /// The name of a caller.
    pub(crate) fn caller(&self, key: &[u8]) -> Name {
        Name::of(blake3::keyed_hash(&self.key, key))
    }

    /// The name of the limit itself.
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
        assert_eq!(names.limit().to_string(), "349efb10507f5cab1fa3170ca7b1dd11");
    }

    #[test]
    fn a_short_secret_is_refused_and_none_is_shown() {
        let error = Secret::new("too short").unwrap_err().to_string();
        assert!(error.contains("has 9 bytes; use at least 16"), "{error}");
        assert_eq!(format!("{:?}", Secret::public()), "Secret(hidden)");
    }
}
