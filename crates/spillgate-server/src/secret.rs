use std::fmt;
use std::hint::black_box;

/// What clients must know: a password of the Redis protocol, or a token over HTTP.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// A secret; `None` if it is empty, which would keep nobody out.
    #[must_use]
    pub fn new(text: impl AsRef<[u8]>) -> Option<Self> {
        let text = text.as_ref();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// True if `given` is the secret. Takes the same time however much of it is right,
    /// so that it cannot be guessed byte by byte.
    pub(crate) fn matches(&self, given: &[u8]) -> bool {
        let mut difference = usize::from(given.len() != self.0.len());
        // As many steps as were given, over the secret as often as it takes.
        for (given, own) in given.iter().zip(self.0.iter().cycle()) {
            difference = black_box(difference | usize::from(given ^ own));
        }
        difference == 0
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
