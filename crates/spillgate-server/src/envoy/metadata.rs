//! Metadata of a limit, which responses carry: any table.

use spillgate_policy::{Metadata, MetadataValue};

use super::scalar;
use super::yaml::{Kind, Value};

#[derive(Debug)]
pub(super) enum Wrong {
    TooMuch,
    /// JSON has no such number: the line, and the number.
    NotFinite(usize, String),
}

/// Reads a table of at most `left` values. A long text counts as several, since aliases may repeat
/// it.
pub(super) fn read(value: &Value, left: &mut usize) -> Result<Metadata, Wrong> {
    let Kind::Table(entries) = &value.kind else { return Ok(Metadata::new()) };
    let mut metadata = Metadata::new();
    for (key, value) in entries {
        take(&key.name, left)?;
        metadata.insert(key.name.to_string(), one(value, left)?);
    }
    Ok(metadata)
}

fn one(value: &Value, left: &mut usize) -> Result<MetadataValue, Wrong> {
    Ok(match &value.kind {
        Kind::Scalar { text, is_quoted } => {
            take(text, left)?;
            match plain(text) {
                _ if *is_quoted => MetadataValue::Text(text.clone()),
                MetadataValue::Number(number) if !number.is_finite() => {
                    return Err(Wrong::NotFinite(value.line, text.clone()));
                }
                plain => plain,
            }
        }
        Kind::List(values) => {
            take("", left)?;
            let values = values.iter().map(|value| one(value, left));
            MetadataValue::List(values.collect::<Result<_, _>>()?)
        }
        Kind::Table(_) => MetadataValue::Table(read(value, left)?),
    })
}

fn take(text: &str, left: &mut usize) -> Result<(), Wrong> {
    *left = left.checked_sub(1 + text.len() / 1_024).ok_or(Wrong::TooMuch)?;
    Ok(())
}

fn plain(text: &str) -> MetadataValue {
    if scalar::is_null(text) {
        return MetadataValue::Null;
    }
    let boolean = || scalar::boolean(text).map(MetadataValue::Bool);
    let number = || scalar::number(text).map(MetadataValue::Number);
    boolean().or_else(number).unwrap_or_else(|| MetadataValue::Text(text.to_owned()))
}
