//! Encodes edits made at run time for their scripts.

use std::time::Duration;

use super::arguments::{Argument, LONGEST};
use super::reply::Rest;
use crate::Name;
use crate::backend::{EditPage, Lasts, MOST_EDITS, Result, SealedEdit};

/// The arguments that [publish](super::PUBLISH) edits.
#[must_use]
pub fn publish(edits: &[SealedEdit]) -> Vec<Argument> {
    let most = Argument::from_slice(MOST_EDITS.to_string().as_bytes());
    [most].into_iter().chain(edits.iter().map(edit)).collect()
}

fn edit(edit: &SealedEdit) -> Argument {
    let (kind, millis) = match edit.lasts {
        Lasts::Forever => (0, 0),
        // No sooner than it should.
        Lasts::For(lasts) => (1, lasts.as_nanos().div_ceil(1_000_000).min(LONGEST) as u64),
        Lasts::Ended => (2, 0),
    };
    let mut argument = Argument::from_slice(edit.name.as_bytes());
    argument.push(kind);
    argument.extend(millis.to_be_bytes());
    argument.extend_from_slice(&edit.sealed);
    argument
}

/// Decodes the edits [since](super::EDITS_SINCE) a version.
///
/// # Errors
///
/// If the reply is malformed.
pub fn edits(bytes: &[u8]) -> Result<EditPage> {
    let mut rest = Rest(bytes);
    let (history, version, has_more) = (rest.number()?, rest.number()?, rest.byte()? == 1);
    let mut edits = Vec::new();
    while !rest.is_empty() {
        let name = Name::from_bytes(rest.array()?);
        let (kind, millis) = (rest.byte()?, rest.number()?);
        let lasts = match kind {
            0 => Lasts::Forever,
            1 => Lasts::For(Duration::from_millis(millis)),
            _ => Lasts::Ended,
        };
        let length = rest.small_number()?;
        edits.push(SealedEdit { name, lasts, sealed: rest.take(length as usize)?.to_vec() });
    }
    Ok(EditPage { history, version, has_more, edits })
}
