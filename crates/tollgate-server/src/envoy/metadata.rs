//! What answers tell of a limit, which may be anything.

use tollgate_policy::{Metadata, MetadataValue};

use super::scalar;
use super::yaml::{Kind, Value};

/// What a table says, if it is not more than `left` values. Long texts count as many, since
/// aliases may repeat them.
pub(super) fn read(value: &Value, left: &mut usize) -> Option<Metadata> {
    let Kind::Table(entries) = &value.kind else { return Some(Metadata::new()) };
    let mut metadata = Metadata::new();
    for (key, value) in entries {
        take(&key.name, left)?;
        metadata.insert(key.name.to_string(), one(value, left)?);
    }
    Some(metadata)
}

fn one(value: &Value, left: &mut usize) -> Option<MetadataValue> {
    Some(match &value.kind {
        Kind::Scalar { text, is_quoted } => {
            take(text, left)?;
            if *is_quoted { MetadataValue::Text(text.clone()) } else { plain(text) }
        }
        Kind::List(values) => {
            take("", left)?;
            let values = values.iter().map(|value| one(value, left));
            MetadataValue::List(values.collect::<Option<_>>()?)
        }
        Kind::Table(_) => MetadataValue::Table(read(value, left)?),
    })
}

fn take(text: &str, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1 + text.len() / 1_024)?;
    Some(())
}

fn plain(text: &str) -> MetadataValue {
    if scalar::is_null(text) {
        return MetadataValue::Null;
    }
    let boolean = || scalar::boolean(text).map(MetadataValue::Bool);
    let number = || scalar::number(text).map(MetadataValue::Number);
    boolean().or_else(number).unwrap_or_else(|| MetadataValue::Text(text.to_owned()))
}
