use std::fmt;

/// Why Redis did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendError {
    fault: Fault,
    text: String,
    is_unanswered: bool,
}

/// What is wrong with Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// It could not be connected to, or the connection was lost.
    Unreachable,
    /// It did not answer in time.
    TimedOut,
    /// It is there but cannot serve just now: a replica, loading, out of memory, without
    /// its cluster.
    Unready,
    /// It refuses us: credentials or permissions.
    Refused,
    /// What was configured cannot be, or Redis is of a kind that cannot keep limits:
    /// somebody has to change something.
    Misconfigured,
    /// It keeps a state that this version cannot read.
    NewerState,
    /// Under the key of a caller it keeps something that no version has written: whoever
    /// [resets](spillgate_policy::Gate::reset_limit) the caller deletes it.
    Corrupt,
    /// It answered something that makes no sense.
    Nonsense,
    /// Nothing is wrong with it, but more is asked of it than it answers: the call was not made.
    Overloaded,
}

impl BackendError {
    /// An error with a text for people.
    pub fn new(fault: Fault, text: impl Into<String>) -> Self {
        Self { fault, text: text.into(), is_unanswered: false }
    }

    /// The error of a call that was sent, and whose answer did not come.
    pub fn unanswered(fault: Fault, text: impl Into<String>) -> Self {
        Self { is_unanswered: true, ..Self::new(fault, text) }
    }

    /// True if what was asked for may have happened nevertheless.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// True if what is kept cannot be read, of one caller or of one limit: all others are as well as
    /// ever.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self.fault, Fault::Corrupt | Fault::NewerState)
    }

    /// What is wrong.
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
