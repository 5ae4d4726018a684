use std::fmt;

use http::header::HeaderName;
use smallvec::SmallVec;

/// What a limit is counted by: mostly one thing.
pub(crate) type Per = SmallVec<[Part; 1]>;

/// One of the things by which a limit counts apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Caller,
    Ip,
    ApiKey,
    User,
    Header(Box<HeaderName>),
    Path(Box<str>),
    /// The value of a descriptor's only entry with this key.
    Entry(Box<str>),
    /// The value of a descriptor's entry at this place, and its key.
    Level(Box<(usize, Box<str>)>),
    /// The domain, and the whole descriptor.
    Descriptor,
    /// The key of a call, as it is.
    Key,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller => f.write_str("caller"),
            Self::Ip => f.write_str("ip"),
            Self::ApiKey => f.write_str("api-key"),
            Self::User => f.write_str("user"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Path(name) => write!(f, "path:{name}"),
            Self::Entry(key) => write!(f, "descriptor:{key}"),
            Self::Level(level) => write!(f, "descriptor:{}", level.1),
            Self::Descriptor => f.write_str("descriptor"),
            Self::Key => f.write_str("key"),
        }
    }
}

/// What a limit is counted by, as the file writes it.
pub(crate) fn per_text(per: &[Part]) -> String {
    let parts: Vec<_> = per.iter().map(ToString::to_string).collect();
    if parts.is_empty() { "global".to_owned() } else { parts.join(", ") }
}
