//! Numbers in requests.

use super::error::{CommandError, quoted};

/// A number within what Redis calls an integer, which may be zero.
pub(super) fn natural(name: &str, text: &[u8]) -> Result<u64, CommandError> {
    integer(name, text, 0)
}

/// A number within what Redis calls an integer, which may not be zero.
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
