use std::fmt;

/// Which values of an entry a limit is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValuePattern {
    Exact(Box<str>),
    Wildcard(Wildcard),
}

/// A text with one or more `*`, each of which stands for any text, also an empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wildcard {
    prefix: Box<str>,
    /// What stands between two `*`, in order.
    middle: Box<[Box<str>]>,
    suffix: Box<str>,
}

/// True if a text is a [`Wildcard`].
pub(crate) fn is_wildcard(text: &str) -> bool {
    text.contains('*')
}

impl ValuePattern {
    pub(crate) fn of(text: &str) -> Self {
        Wildcard::of(text).map_or_else(|| Self::Exact(text.into()), Self::Wildcard)
    }

    #[inline]
    pub(crate) fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(exact) => &**exact == value,
            Self::Wildcard(wildcard) => wildcard.matches(value),
        }
    }

    /// The value, if it is the only one.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(exact) => Some(exact),
            Self::Wildcard(_) => None,
        }
    }
}

/// As it could be written.
impl fmt::Display for ValuePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => f.write_str(text),
            Self::Wildcard(Wildcard { prefix, middle, suffix }) => {
                write!(f, "{prefix}*")?;
                middle.iter().try_for_each(|part| write!(f, "{part}*"))?;
                f.write_str(suffix)
            }
        }
    }
}

impl Wildcard {
    /// The wildcard that a text is, if it has a `*`.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once('*')?;
        let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        let middle = middle.split('*').filter(|part| !part.is_empty()).map(Into::into).collect();
        Some(Self { prefix: prefix.into(), middle, suffix: suffix.into() })
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        let inner = value.strip_prefix(&*self.prefix);
        let Some(mut inner) = inner.and_then(|rest| rest.strip_suffix(&*self.suffix)) else {
            return false;
        };
        // If a part is taken where it is first found, most is left for those after it.
        self.middle.iter().all(|part| match inner.split_once(&**part) {
            Some((_, rest)) => {
                inner = rest;
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_stands_for_any_text_wherever_it_is() {
        let values = ["", "a", "b", "ab", "ba", "aab", "abb", "aba", "abab", "axb", "axbxa", "*"];
        for (pattern, matching) in [
            ("*", &values[..]),
            ("**", &values),
            ("a*", &["a", "ab", "aab", "abb", "aba", "abab", "axb", "axbxa"]),
            ("*b", &["b", "ab", "aab", "abb", "abab", "axb"]),
            ("a*b", &["ab", "aab", "abb", "abab", "axb"]),
            ("a**b", &["ab", "aab", "abb", "abab", "axb"]),
            ("a*a", &["aba", "axbxa"]),
            ("ab*ab", &["abab"]),
            ("a*b*a", &["aba", "axbxa"]),
            ("*b*b*", &["abb", "abab"]),
            ("*x*x*", &["axbxa"]),
        ] {
            let wildcard = Wildcard::of(pattern).unwrap();
            let found: Vec<_> =
                values.into_iter().filter(|value| wildcard.matches(value)).collect();
            assert_eq!(found, matching, "{pattern}");
        }
    }

    /// The same by trying out every text that a `*` may stand for.
    fn matches_slowly(pattern: &str, value: &str) -> bool {
        match pattern.split_at_checked(1) {
            None => value.is_empty(),
            Some(("*", rest)) => {
                (0..=value.len()).any(|taken| matches_slowly(rest, &value[taken..]))
            }
            Some((letter, rest)) => {
                value.strip_prefix(letter).is_some_and(|value| matches_slowly(rest, value))
            }
        }
    }

    proptest! {
        #[test]
        fn a_wildcard_matches_what_its_stars_can_stand_for(
            pattern in "[ab*]{0,8}",
            value in "[ab]{0,10}",
        ) {
            let matches = ValuePattern::of(&pattern).matches(&value);
            prop_assert_eq!(matches, matches_slowly(&pattern, &value));
        }
    }
}
