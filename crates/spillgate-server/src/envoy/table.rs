//! Mappings of a file, read key by key.

use std::sync::Arc;

use super::problems::Report;
use super::scalar;
use super::yaml::{Key, Kind, Value};

/// Maximum length of a text. Aliases repeat it.
const LONGEST: usize = 1_024;

/// A mapping whose unknown keys were reported.
#[derive(Clone, Copy)]
pub(super) struct Table<'v> {
    pub(super) line: usize,
    entries: &'v [(Key, Arc<Value>)],
}

impl<'v> Table<'v> {
    /// A value as a mapping. Reports unknown keys.
    pub(super) fn of(
        value: &'v Value,
        what: &str,
        known: &[&str],
        report: &mut Report<'_>,
    ) -> Option<Self> {
        let Kind::Table(entries) = &value.kind else {
            let kind = value.name();
            report.note(value.line, format_args!("{what} must be a table, and is {kind}"));
            return None;
        };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&&*key.name)) {
            let (name, known) = (&key.name, known.join(", "));
            report.note(key.line, format_args!("{what} has no key {name:?}; known are {known}"));
        }
        Some(Self { line: value.line, entries })
    }

    pub(super) fn value(self, key: &str) -> Option<&'v Value> {
        let entry = self.entries.iter().find(|(own, _)| &*own.name == key);
        entry.map(|(_, value)| &**value).filter(|value| !value.is_null())
    }

    /// A text. Numbers and booleans are taken as they are written.
    pub(super) fn text(self, key: &str, report: &mut Report<'_>) -> Option<&'v str> {
        let value = self.value(key)?;
        match &value.kind {
            Kind::Scalar { text, .. } if text.len() <= LONGEST => Some(text),
            Kind::Scalar { .. } => {
                report.note(value.line, format_args!("{key} has more than {LONGEST} bytes"));
                None
            }
            _ => {
                let kind = value.name();
                report.note(value.line, format_args!("{key} must be a text, and is {kind}"));
                None
            }
        }
    }

    pub(super) fn name(self, key: &str, of: &str, report: &mut Report<'_>) -> &'v str {
        let name = self.text(key, report);
        let is_empty = name.map_or_else(|| self.value(key).is_none(), str::is_empty);
        if is_empty {
            report.note(self.line_of(key), format_args!("the {of} is empty; name it"));
        }
        name.unwrap_or_default()
    }

    /// A boolean, false by default.
    pub(super) fn is(self, key: &str, report: &mut Report<'_>) -> bool {
        let Some(value) = self.value(key) else { return false };
        let is = value.plain().and_then(scalar::boolean);
        if is.is_none() {
            report.note(value.line, format_args!("{key} must be true or false"));
        }
        is.unwrap_or(false)
    }

    /// A number from 0 to 4,294,967,295.
    pub(super) fn number(self, key: &str, report: &mut Report<'_>) -> Option<u32> {
        let value = self.value(key)?;
        let number = value.plain().and_then(scalar::integer);
        let number = number.and_then(|number| u32::try_from(number).ok());
        if number.is_none() {
            let most = u32::MAX;
            report.note(value.line, format_args!("{key} must be a whole number up to {most}"));
        }
        number
    }

    pub(super) fn list(self, key: &str, report: &mut Report<'_>) -> &'v [Arc<Value>] {
        let Some(value) = self.value(key) else { return &[] };
        match &value.kind {
            Kind::List(values) => values,
            _ => {
                let kind = value.name();
                report.note(value.line, format_args!("{key} must be a list, and is {kind}"));
                &[]
            }
        }
    }

    /// The line of a key, or of the mapping if it is missing.
    pub(super) fn line_of(self, key: &str) -> usize {
        let entry = self.entries.iter().find(|(own, _)| &*own.name == key);
        entry.map_or(self.line, |(key, _)| key.line)
    }
}
