use std::borrow::Cow;
use std::fmt;

use spillgate_policy::Error;

/// Why a command was not carried out: an error reply. The connection goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandError(Cow<'static, str>);

impl CommandError {
    pub(super) const SYNTAX: Self = Self(Cow::Borrowed("ERR syntax error"));

    pub(super) const OVERLOADED: Self =
        Self(Cow::Borrowed("OVERLOADED the store is overloaded; try again"));

    /// An error with a code of its own.
    pub(super) const fn coded(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub(super) fn new(text: impl fmt::Display) -> Self {
        Self(Cow::Owned(format!("ERR {text}")))
    }

    /// `command` is in small letters, with its subcommand after a bar.
    pub(super) fn arity(command: impl fmt::Display) -> Self {
        Self::new(format_args!("wrong number of arguments for '{command}' command"))
    }

    pub(super) fn unknown_subcommand(command: &str, given: &[u8]) -> Self {
        let given = quoted(given);
        Self::new(format_args!("unknown subcommand '{given}' of {command}"))
    }
}

/// Shows clients only what is meant for them.
impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        if error.is_overloaded() { Self::OVERLOADED } else { Self::new(error.for_clients()) }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a client sent, as it may be shown: not too much of it, and as text.
pub(super) fn quoted(bytes: &[u8]) -> Cow<'_, str> {
    const LONGEST: usize = 128;
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)])
}

/// An argument within the integers of Redis, from 0 on.
pub(super) fn natural(name: &str, text: &[u8]) -> Result<u64, CommandError> {
    integer(name, text, 0)
}

/// The same from 1 on.
pub(super) fn positive(name: &str, text: &[u8]) -> Result<u64, CommandError> {
    integer(name, text, 1)
}

fn integer(name: &str, text: &[u8], least: u64) -> Result<u64, CommandError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    let number = number.and_then(|number| u64::try_from(number).ok());
    number.filter(|number| *number >= least).ok_or_else(|| {
        let (given, most) = (quoted(text), i64::MAX);
        CommandError::new(format_args!(
            "{name} must be an integer from {least} to {most}, not '{given}'"
        ))
    })
}
