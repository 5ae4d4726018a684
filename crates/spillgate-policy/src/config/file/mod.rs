//! The policy file: a text becomes a [`Spec`], with everything that is wrong in its
//! structure. What the values mean is not judged here.

mod adaptive;
mod ban;
mod decode;
mod extra_tables;
mod place;
mod report;
#[cfg(feature = "schema")]
mod schema;
mod section;
#[cfg(test)]
mod tests;
mod value;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use self::report::Report;
pub(crate) use self::section::Section;
use crate::Problem;
use crate::config::spec::Spec;

pub use self::extra_tables::{PolicyFile, Settings, Tables};
pub(crate) use self::place::place;
#[cfg(feature = "schema")]
pub use self::schema::schema;

/// The longest text that is read. A policy has some kilobytes; lists of callers can
/// make it some megabytes.
const MOST_MIB: usize = 16;

/// Reads a file of at most that length. What is no file, such as a device, might never
/// end.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    // Before it is opened: to open a pipe is to wait for someone at its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let file = File::open(path)?;
    let mut text = String::new();
    let most = (MOST_MIB << 20) as u64;
    if file.take(most + 1).read_to_string(&mut text)? as u64 > most {
        return Err(io::Error::other(format!("it has more than {MOST_MIB} MiB")));
    }
    Ok(text)
}

/// Decodes a policy. What is wrong is reported and left out, the rest is decoded.
#[cfg(test)]
pub(crate) fn decode(text: &str, file: Option<&str>) -> (Spec, Vec<Problem>) {
    decode_with(text, file, |_| ())
}

/// [Decodes](decode) a policy, and lets a program read its own tables of the same file.
pub(crate) fn decode_with(
    text: &str,
    file: Option<&str>,
    tables: impl FnOnce(&mut Section<'_>),
) -> (Spec, Vec<Problem>) {
    if text.len() > MOST_MIB << 20 {
        let message = format!("the policy has {} bytes; write at most {MOST_MIB} MiB", text.len());
        let start = place(text, file, &(0..0));
        return (Spec::default(), vec![Problem::new(message).at(Some(start))]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let report = Report::new(text, &errors);
    tables(&mut Section::file(table.get_ref(), &report));
    let spec = Section::file(table.get_ref(), &report).read(decode::policy);
    dismantle(DeValue::Table(table.into_inner()));
    (spec, report.into_problems(text, file))
}

/// Drops a value without recursion: dotted keys in nested tables may be so deep, for
/// the parser, that a thread's stack would not do.
fn dismantle(value: DeValue<'_>) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            DeValue::Table(table) => left.extend(table.into_iter().map(|(_, v)| v.into_inner())),
            DeValue::Array(entries) => left.extend(entries.into_iter().map(Spanned::into_inner)),
            _ => {}
        }
    }
}
