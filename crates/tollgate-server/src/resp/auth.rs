use std::fmt;
use std::hint::black_box;

/// The password that clients must give with `AUTH` or `HELLO`.
#[derive(Clone)]
pub struct Password(Box<[u8]>);

impl Password {
    /// A password; `None` if it is empty, which would keep nobody out.
    #[must_use]
    pub fn new(text: impl AsRef<[u8]>) -> Option<Self> {
        let text = text.as_ref();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// True if `given` is the password. Takes the same time however much of it is right,
    /// so that it cannot be guessed byte by byte.
    pub(super) fn matches(&self, given: &[u8]) -> bool {
        let mut difference = usize::from(given.len() != self.0.len());
        // As many steps as were given, over the password as often as it takes.
        for (given, own) in given.iter().zip(self.0.iter().cycle()) {
            difference = black_box(difference | usize::from(given ^ own));
        }
        difference == 0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_matches() {
        let password = Password::new("tolltoll").unwrap();
        assert!(password.matches(b"tolltoll"));
        // Shorter and longer ones agree with it wherever they can be compared.
        for wrong in ["", "toll", "tolltolltolltoll", "tolltolx", "xolltoll", "TOLLTOLL"] {
            assert!(!password.matches(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn an_empty_password_is_none_and_a_password_is_not_shown() {
        assert!(Password::new("").is_none());
        assert!(!format!("{:?}", Password::new("tolltoll")).contains("toll"));
    }
}
