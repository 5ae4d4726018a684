use std::error::Error;
use std::fmt;

/// A protocol error, which closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The number of arguments is invalid or too large.
    ArgumentCount,
    /// This byte stands where an argument should begin.
    NotAnArgument(u8),
    /// The length of an argument is invalid or too large.
    ArgumentLength,
    /// An argument does not end where its length says.
    ArgumentEnd,
    /// The request is too long.
    RequestLength,
    /// A line of text is too long.
    InlineLength,
    /// A line of text has a quote that is not closed, or not followed by a space.
    Quotes,
    /// This is HTTP, TLS or something else that a browser can be made to speak.
    Foreign,
}

/// In the words of Redis, where Redis has some.
impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::ArgumentCount => f.write_str("invalid multibulk length"),
            Self::NotAnArgument(byte) => {
                write!(f, "expected '$', got '{}'", byte.escape_ascii())
            }
            Self::ArgumentLength => f.write_str("invalid bulk length"),
            Self::ArgumentEnd => f.write_str("expected CRLF after a bulk string"),
            Self::RequestLength => f.write_str("too big request"),
            Self::InlineLength => f.write_str("too big inline request"),
            Self::Quotes => f.write_str("unbalanced quotes in request"),
            Self::Foreign => f.write_str("this is not the Redis protocol"),
        }
    }
}

impl Error for ProtocolError {}
