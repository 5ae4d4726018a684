//! Who is denied most.
//!
//! ```text
//! SG.TOP [limit] [COUNT n] [REVEAL]
//! ```
//!
//! Replies with an array per caller, most denied first: the limit, the caller, how many of its calls
//! were denied at least, and by how much that may be too low. What may be secret is a fingerprint, unless
//! an operator asks to reveal it.

use spillgate_policy::store::Store;

use super::Endpoint;
use super::codec::{Args, Writer};
use super::error::{CommandError, positive};
use super::key_args::text;
use super::session::Session;

/// How many callers are listed, unless told otherwise.
const COUNT: usize = 20;

/// How many may be listed.
const MOST: usize = 1024;

struct Options<'a> {
    limit: Option<&'a str>,
    count: usize,
    reveal: bool,
}

/// `SG.TOP`
pub(super) fn run<S: Store>(
    endpoint: &Endpoint<S>,
    session: &Session,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let Options { limit, count, reveal } = Options::parse(args)?;
    if reveal && !session.is_operator {
        return Err(CommandError::coded(
            "NOPERM only operators may see callers in clear; authenticate with the server's token: \
             AUTH TOKEN",
        ));
    }
    let enforcer = &endpoint.enforcer;
    let limits = enforcer.callers(limit, count);
    // One that was removed may still be known.
    let is_unknown =
        |limit: &&str| limits.is_empty() && enforcer.gate().policy().parts(limit).is_none();
    if let Some(limit) = limit.filter(is_unknown) {
        return Err(CommandError::new(format_args!("there is no limit {limit:?}")));
    }
    let mut callers: Vec<_> = limits
        .iter()
        .flat_map(|it| it.denied.callers.iter().map(move |(key, denied)| (it, key, *denied)))
        .collect();
    callers.sort_by_key(|(.., denied)| std::cmp::Reverse(*denied));
    callers.truncate(count);
    out.array(callers.len());
    for (limit, key, denied) in callers {
        out.array(4);
        out.bulk(&limit.limit);
        out.bulk(if reveal { key.in_clear() } else { key.to_string() });
        out.integer(i64::try_from(denied).unwrap_or(i64::MAX));
        out.integer(i64::try_from(limit.denied.error).unwrap_or(i64::MAX));
    }
    Ok(())
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self { limit: None, count: COUNT, reveal: false };
        let mut words = args.skip(1).iter().peekable();
        let is_option = |word: &[u8]| {
            word.eq_ignore_ascii_case(b"count") || word.eq_ignore_ascii_case(b"reveal")
        };
        if let Some(limit) = words.next_if(|word| !is_option(word)) {
            options.limit = Some(text("limit", limit)?);
        }
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"reveal") {
                options.reveal = true;
            } else if word.eq_ignore_ascii_case(b"count") {
                let count = positive("count", words.next().ok_or(CommandError::SYNTAX)?)?;
                let count = usize::try_from(count).ok().filter(|count| *count <= MOST);
                options.count = count.ok_or_else(|| {
                    CommandError::new(format_args!("count must be an integer from 1 to {MOST}"))
                })?;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(options)
    }
}
