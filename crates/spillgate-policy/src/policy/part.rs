use std::fmt;

use http::header::HeaderName;
use smallvec::SmallVec;

use crate::Caller;

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

impl Part {
    /// True if the part names a caller.
    pub(crate) fn is_identity(&self) -> bool {
        matches!(self, Self::Caller | Self::Ip | Self::ApiKey | Self::User)
    }

    /// The caller whom a value of the part names, if it names one.
    pub(crate) fn caller<'v>(&self, value: &'v str) -> Option<Caller<'v>> {
        match self {
            _ if value == "anonymous" => None,
            Self::Caller | Self::Ip => Caller::parse(value).ok(),
            Self::ApiKey => Some(Caller::ApiKey(value.as_bytes().into())),
            Self::User => Some(Caller::User(value.as_bytes().into())),
            _ => None,
        }
    }
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
