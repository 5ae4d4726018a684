//! Dynamic metadata for the next filter of the proxy.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use spillgate_policy::{DescriptorOutcome, DescriptorState, LimitState, Metadata, MetadataValue};

use super::messages::{RateLimitDescriptor, RateLimitRequest};

type Fields = BTreeMap<String, Value>;

/// The request, the indexes of descriptors that exceed a limit in quota mode, and the metadata of
/// limits that are not exceeded. `None` if no limit of the call has any of that.
pub(super) fn metadata(
    request: &RateLimitRequest,
    outcome: &DescriptorOutcome<'_>,
) -> Option<Struct> {
    let limits = || outcome.descriptors().flat_map(|descriptor| descriptor.limits());
    let has_quota_mode = limits().any(|limit| limit.is_quota_mode());
    if !has_quota_mode && limits().all(|limit| of_limit(&limit).is_empty()) {
        return None;
    }
    let is_violated = |(_, descriptor): &(usize, DescriptorState<'_>)| descriptor.exceeds_quota();
    let violations = outcome.descriptors().enumerate().filter(is_violated);
    let violations = violations.map(|(place, _)| Kind::NumberValue(place as f64));
    let descriptors = request.descriptors.iter().map(descriptor);
    let mut fields = table([
        ("domain", Kind::StringValue(request.domain.clone())),
        ("descriptors", list(descriptors)),
        ("quotaModeEnabled", Kind::BoolValue(has_quota_mode)),
        ("quotaModeViolations", list(violations)),
    ]);
    if request.hits_addend > 0 {
        put(&mut fields, "hitsAddend", Kind::NumberValue(request.hits_addend.into()));
    }
    let passed = passed(outcome);
    if !passed.is_empty() {
        put(&mut fields, "metadata", Kind::StructValue(Struct { fields: passed }));
    }
    Some(Struct { fields })
}

/// The metadata of all limits of descriptors that exceed none.
fn passed(outcome: &DescriptorOutcome<'_>) -> Fields {
    let mut merged = Fields::new();
    let is_passed = |state: &DescriptorState<'_>| !state.is_denied() && !state.exceeds_quota();
    for descriptor in outcome.descriptors().filter(is_passed) {
        descriptor.limits().for_each(|limit| merge(&mut merged, of_limit(&limit)));
    }
    merged
}

fn of_limit<'p>(limit: &LimitState<'p>) -> &'p Metadata {
    static NONE: Metadata = Metadata::new();
    limit.metadata().unwrap_or(&NONE)
}

/// Adds what is not there yet. Tables that are on both sides become one.
fn merge(merged: &mut Fields, metadata: &Metadata) {
    for (name, value) in metadata {
        match merged.entry(name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(Value { kind: Some(kind(value)) });
            }
            Entry::Occupied(mut entry) => {
                let known = &mut entry.get_mut().kind;
                if let (Some(Kind::StructValue(known)), MetadataValue::Table(more)) = (known, value)
                {
                    merge(&mut known.fields, more);
                }
            }
        }
    }
}

fn kind(value: &MetadataValue) -> Kind {
    match value {
        MetadataValue::Null => Kind::NullValue(0),
        MetadataValue::Bool(value) => Kind::BoolValue(*value),
        MetadataValue::Number(number) => Kind::NumberValue(*number),
        MetadataValue::Text(text) => Kind::StringValue(text.clone()),
        MetadataValue::List(values) => list(values.iter().map(kind)),
        MetadataValue::Table(table) => {
            let mut fields = Fields::new();
            merge(&mut fields, table);
            Kind::StructValue(Struct { fields })
        }
    }
}

fn descriptor(asked: &RateLimitDescriptor) -> Kind {
    let entries = asked.entries.iter();
    let entries = entries.map(|entry| Kind::StringValue(format!("{}={}", entry.key, entry.value)));
    let mut fields = table([("entries", list(entries))]);
    if let Some(hits) = asked.hits_addend {
        put(&mut fields, "hitsAddend", Kind::NumberValue(hits as f64));
    }
    Kind::StructValue(Struct { fields })
}

fn table<const N: usize>(fields: [(&str, Kind); N]) -> Fields {
    let mut table = Fields::new();
    fields.into_iter().for_each(|(name, kind)| put(&mut table, name, kind));
    table
}

fn put(table: &mut Fields, name: &str, kind: Kind) {
    table.insert(name.to_owned(), Value { kind: Some(kind) });
}

fn list(values: impl Iterator<Item = Kind>) -> Kind {
    let values = values.map(|kind| Value { kind: Some(kind) }).collect();
    Kind::ListValue(ListValue { values })
}
