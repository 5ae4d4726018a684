/// Which values of an entry a limit is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValuePattern {
    Exact(Box<str>),
    /// All that begin so.
    Prefix(Box<str>),
}

impl ValuePattern {
    /// A text, or one that ends in `*` for all that begin with the rest.
    pub(crate) fn of(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.into()),
            None => Self::Exact(text.into()),
        }
    }

    #[inline]
    pub(crate) fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(exact) => &**exact == value,
            Self::Prefix(prefix) => value.starts_with(&**prefix),
        }
    }

    /// The value, if it is the only one.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(exact) => Some(exact),
            Self::Prefix(_) => None,
        }
    }
}
