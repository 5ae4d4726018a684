use std::fmt;

/// The result of a call to Redis.
pub type Result<T, E = BackendError> = std::result::Result<T, E>;

/// Why Redis did not decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendError {
    fault: Fault,
    text: String,
    is_unanswered: bool,
}

/// The kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Connection refused or lost.
    Unreachable,
    /// No reply in time.
    TimedOut,
    /// It cannot serve at the moment: a replica, loading, out of memory, or its Cluster is down.
    Unready,
    /// Credentials or permissions were refused.
    Refused,
    /// The configuration is wrong, here or of the server: an operator has to change something.
    Misconfigured,
    /// A state written by another version.
    OtherVersion,
    /// A value that no version has written. [Reset](spillgate_policy::Gate::reset_limit) the caller
    /// to delete it.
    Corrupt,
    /// A reply that makes no sense.
    Nonsense,
    /// The slot of the names is being moved, and some may have arrived while others have not. The
    /// call was not made: make one for each name.
    Scattered,
    /// Backpressure: Redis is up, but too many calls wait. The call was not made.
    Overloaded,
}

impl BackendError {
    /// An error with a message.
    pub fn new(fault: Fault, text: impl Into<String>) -> Self {
        Self { fault, text: text.into(), is_unanswered: false }
    }

    /// The error of a call that was sent and not answered.
    pub fn unanswered(fault: Fault, text: impl Into<String>) -> Self {
        Self { is_unanswered: true, ..Self::new(fault, text) }
    }

    /// True if the call may have taken effect.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// True if the stored value of one caller or limit cannot be read; others are not affected.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self.fault, Fault::Corrupt | Fault::OtherVersion)
    }

    /// True if the call was certainly not made, and can be made later.
    pub(crate) fn is_unmade(&self) -> bool {
        !self.is_unanswered && !self.is_unreadable()
    }

    /// The kind of failure.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for BackendError {}
