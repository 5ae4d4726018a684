use std::fmt;

/// Why a call failed: a code for programs and a text for people.
///
/// A denied call is not an error but a [`Decision`](spillgate::Decision).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    message: String,
}

/// The kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// An argument is missing, out of range or unknown.
    Argument,
    /// A text is not UTF-8.
    Encoding,
    /// A quota is invalid: its numbers or its text.
    Quota,
    /// The quota is valid, but the algorithm is unknown or cannot count it.
    Algorithm,
    /// The capacity is invalid, or there is no memory for it.
    Capacity,
    /// A tier is unknown, duplicate or incompatible.
    Tier,
}

impl Error {
    /// An error of that code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// What kind of error it is.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<spillgate::Error> for Error {
    fn from(error: spillgate::Error) -> Self {
        let code = match () {
            () if error.is_algorithm() => ErrorCode::Algorithm,
            () if error.is_capacity() => ErrorCode::Capacity,
            () if error.is_tier() => ErrorCode::Tier,
            () => ErrorCode::Quota,
        };
        // With the text of a quota, and carets under the wrong part.
        Self::new(code, format!("{error:#}"))
    }
}
