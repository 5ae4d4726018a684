//! What the next filter of a proxy is told of limits that do not refuse.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};
use tollgate_policy::{DescriptorPassage, DescriptorState};

/// What was asked, and the places of descriptors that exceed a limit in quota mode. Nothing, if
/// there is no such limit.
pub(super) fn metadata(
    request: &RateLimitRequest,
    passage: &DescriptorPassage<'_>,
) -> Option<Struct> {
    let mut descriptors = passage.descriptors();
    if !descriptors.any(|descriptor| descriptor.limits().any(|limit| limit.is_quota_mode())) {
        return None;
    }
    let is_violated = |(_, descriptor): &(usize, DescriptorState<'_>)| descriptor.exceeds_quota();
    let violations = passage.descriptors().enumerate().filter(is_violated);
    let violations = violations.map(|(place, _)| Kind::NumberValue(place as f64));
    let descriptors = request
        .descriptors
        .iter()
        .map(|descriptor| Kind::StructValue(table([("entries", list(entries(descriptor)))])));
    Some(table([
        ("domain", Kind::StringValue(request.domain.clone())),
        ("descriptors", list(descriptors)),
        ("quotaModeEnabled", Kind::BoolValue(true)),
        ("quotaModeViolations", list(violations)),
    ]))
}

fn entries(descriptor: &RateLimitDescriptor) -> impl Iterator<Item = Kind> {
    let entries = descriptor.entries.iter();
    entries.map(|entry| Kind::StringValue(format!("{}={}", entry.key, entry.value)))
}

fn table<const N: usize>(fields: [(&str, Kind); N]) -> Struct {
    let fields = fields.map(|(name, kind)| (name.to_owned(), Value { kind: Some(kind) }));
    Struct { fields: fields.into_iter().collect() }
}

fn list(values: impl Iterator<Item = Kind>) -> Kind {
    let values = values.map(|kind| Value { kind: Some(kind) }).collect();
    Kind::ListValue(ListValue { values })
}
