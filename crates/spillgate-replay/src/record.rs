//! One request of a log.

use std::net::IpAddr;

use http::HeaderName;
use smallvec::SmallVec;
use spillgate::Timestamp;

/// A request as a line of a log describes it.
#[derive(Clone, Debug)]
pub struct Record<'l> {
    /// When it was sent or, in many formats, answered.
    pub time: Timestamp,
    /// True if the log has whole seconds only.
    pub is_whole_second: bool,
    /// The other end of the connection.
    pub peer: IpAddr,
    /// The method.
    pub method: &'l [u8],
    /// The path without the query, as it was sent.
    pub path: &'l str,
    /// The host, perhaps with a port, if the log has it.
    pub host: Option<&'l str>,
    /// The user, if the log names one.
    pub user: Option<&'l [u8]>,
    /// The status of the response; 0 if the log does not have it.
    pub status: u16,
    /// Those of the [wanted](Wanted) headers that the log has, by their place.
    pub headers: Headers<'l>,
}

/// Values of headers by the place of their name in [`Wanted`].
pub type Headers<'l> = SmallVec<[(usize, &'l [u8]); 2]>;

/// Why a line is no request that can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Skip {
    /// It does not have the parts of its format: truncated, binary, or of another format.
    Malformed,
    /// It is longer than [`MAX_LINE`](crate::MAX_LINE).
    TooLong,
    /// Its time is none, before 2000 or in the future.
    Time,
    /// It does not name the client's address.
    Address,
    /// The client did not send a request: TLS to a port without TLS, or nothing.
    NoRequest,
    /// It is older than what was replayed before, by more than the window.
    Late,
}

impl Skip {
    /// All reasons.
    pub const ALL: [Self; 6] =
        [Self::Malformed, Self::TooLong, Self::Time, Self::Address, Self::NoRequest, Self::Late];

    /// The reason for people.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "not in the format of the log",
            Self::TooLong => "longer than 65,535 bytes",
            Self::Time => "no time between 2000 and today",
            Self::Address => "no client address",
            Self::NoRequest => "not an HTTP request",
            Self::Late => "out of order by more than the window",
        }
    }
}

/// The headers that a policy reads: nothing else of a log is kept.
#[derive(Clone, Debug, Default)]
pub struct Wanted(Vec<HeaderName>);

impl Wanted {
    /// Headers by name; duplicates count once.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n HeaderName>) -> Self {
        let mut wanted: Vec<HeaderName> = Vec::new();
        for name in names {
            if !wanted.contains(name) {
                wanted.push(name.clone());
            }
        }
        Self(wanted)
    }

    /// The place of a header in lower case.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|wanted| wanted == name)
    }

    /// The name at a place.
    #[must_use]
    pub fn name(&self, place: usize) -> Option<&HeaderName> {
        self.0.get(place)
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.0.iter()
    }
}
