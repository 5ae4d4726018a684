use std::fmt;

use subtle::ConstantTimeEq;

/// A shared secret: the token of the server, or a password of the Redis protocol.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// A secret; `None` if it is empty.
    #[must_use]
    pub fn new(text: impl AsRef<[u8]>) -> Option<Self> {
        let text = text.as_ref();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// True if `given` is the secret. Compares in constant time, so that the secret cannot be
    /// guessed byte by byte; its length is no secret.
    pub(crate) fn matches(&self, given: &[u8]) -> bool {
        self.0.ct_eq(given).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_matches() {
        let secret = Secret::new("gategate").unwrap();
        assert!(secret.matches(b"gategate"));
        // Shorter and longer ones agree with it wherever they can be compared.
        for wrong in ["", "gate", "gategategategate", "gategatx", "xategate", "GATEGATE"] {
            assert!(!secret.matches(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn an_empty_secret_is_none_and_a_secret_is_not_shown() {
        assert!(Secret::new("").is_none());
        assert!(!format!("{:?}", Secret::new("gategate")).contains("gate"));
    }
}
