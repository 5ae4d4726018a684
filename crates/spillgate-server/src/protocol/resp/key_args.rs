//! A limit of the policy and a key, as commands name them.

use super::codec::Args;
use super::error::{CommandError, natural, quoted};

/// `COMMAND limit key …` for limits counted per one part, such as an address, and
/// `COMMAND limit PARTS n part1 … partn …` for those counted per several parts, or per none
/// (`PARTS 0`). A key that reads `PARTS` is written `PARTS 1 PARTS`.
pub(super) struct KeyArgs<'a> {
    pub(super) limit: &'a str,
    pub(super) parts: Vec<&'a str>,
    /// What follows.
    pub(super) rest: Args<'a>,
}

impl<'a> KeyArgs<'a> {
    /// Parses at least three arguments of a command.
    pub(super) fn parse(command: &str, args: Args<'a>) -> Result<Self, CommandError> {
        let limit = text("limit", args.at(1))?;
        let (first, count) = if args.is(2, "PARTS") { (4, count(command, args)?) } else { (2, 1) };
        let after = args.skip(first);
        if after.len() < count {
            return Err(CommandError::arity(command));
        }
        let parts = after.iter().take(count).map(|part| text("key", part));
        Ok(Self { limit, parts: parts.collect::<Result<_, _>>()?, rest: after.skip(count) })
    }
}

fn count(command: &str, args: Args<'_>) -> Result<usize, CommandError> {
    let count = args.get(3).ok_or_else(|| CommandError::arity(command))?;
    // More than fit into a `usize` are more than were given.
    Ok(usize::try_from(natural("the number of parts", count)?).unwrap_or(usize::MAX))
}

/// Policies are text, and so is what they are asked about.
pub(super) fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, CommandError> {
    std::str::from_utf8(bytes).map_err(|_| {
        CommandError::new(format_args!("{name} must be UTF-8, not '{}'", quoted(bytes)))
    })
}
