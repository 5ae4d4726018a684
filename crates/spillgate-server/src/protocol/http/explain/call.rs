//! A call of Envoy's rate-limit service in JSON, as protobuf writes it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use spillgate_policy::store::Store;
use spillgate_policy::{Descriptors, DescriptorsExplanation, Gate};

use crate::envoy;
use crate::protocol::grpc::messages::{
    Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest,
};
use crate::protocol::grpc::{DESCRIPTORS, DecodedRequest, ENTRIES};
use crate::protocol::http::check::Text;
use crate::protocol::http::json::Integer;
use crate::protocol::http::problem::Problem;

/// A call of Envoy's rate-limit service.
#[derive(JsonSchema)]
#[schemars(rename = "DescriptorCall", deny_unknown_fields)]
pub(in crate::protocol::http) struct Call<'a> {
    /// The domain of the limits.
    #[schemars(length(min = 1))]
    domain: Text<'a>,
    /// The descriptors.
    #[schemars(length(min = 1, max = DESCRIPTORS))]
    descriptors: Vec<CallDescriptor<'a>>,
    /// How often each descriptor counts that does not say so itself: 1 if absent or 0.
    #[schemars(with = "Option<u32>", range(max = u32::MAX))]
    hits_addend: Option<Integer>,
}

/// A descriptor of a call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::protocol::http) struct CallDescriptor<'a> {
    /// The entries, in their order.
    #[serde(borrow)]
    #[schemars(length(max = ENTRIES))]
    entries: Vec<CallEntry<'a>>,
    /// How often it counts; 0 only looks.
    hits_addend: Option<Integer>,
    /// Whether the hits are given back.
    is_negative_hits: Option<bool>,
    /// A quota in place of the limits that it would meet.
    #[serde(borrow)]
    limit: Option<CallLimit<'a>>,
}

/// An entry of a descriptor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallEntry<'a> {
    /// The key.
    #[serde(borrow)]
    key: Text<'a>,
    /// The value.
    #[serde(borrow)]
    value: Text<'a>,
}

/// A quota that comes with a descriptor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLimit<'a> {
    requests_per_unit: Integer,
    #[serde(borrow)]
    unit: Text<'a>,
}

impl JsonSchema for CallLimit<'_> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallLimit".into()
    }

    /// There is at most one in a nanosecond.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let form = |units: &[&str], most: u32| {
            json_schema!({
                "type": "object",
                "properties": {
                    "requests_per_unit": { "type": "integer", "minimum": 0, "maximum": most },
                    "unit": { "type": "string", "enum": units },
                },
                "required": ["requests_per_unit", "unit"],
                "additionalProperties": false,
            })
        };
        let names: Vec<_> = envoy::json_names().map(|(name, _)| name).collect();
        let (second, others) = names.split_at(1);
        json_schema!({ "anyOf": [form(second, 1_000_000_000), form(others, u32::MAX)] })
    }
}

impl<'a> Call<'a> {
    pub(super) fn new(
        domain: Text<'a>,
        descriptors: Vec<CallDescriptor<'a>>,
        hits_addend: Option<Integer>,
    ) -> Self {
        Self { domain, descriptors, hits_addend }
    }

    pub(super) async fn explained<S: Store>(
        self,
        gate: &Gate<S>,
    ) -> Result<DescriptorsExplanation, Problem> {
        // Checked as a call of Envoy is.
        let request = DecodedRequest::new(self.message()?);
        let request = request.map_err(|status| Problem::bad_request(status.message()))?;
        let entries = request.entries();
        let descriptors = request.descriptors(&entries);
        let question = Descriptors { domain: &request.message.domain, descriptors: &descriptors };
        let explained = gate.explain_descriptors(&question).await;
        let mut explained = explained.map_err(|error| match error.is_store() {
            true => Problem::unavailable(error),
            false => Problem::refused(&error),
        })?;
        let closed = explained.descriptors.iter_mut().zip(request.closed());
        for limit in closed.filter(|(_, closed)| *closed).flat_map(|(it, _)| &mut it.limits) {
            // It is asked for more than there can be, which is no cost to show.
            if let Some(state) = &mut limit.state {
                (state.cost, state.limit, state.remaining) = (1, 0, 0);
            }
        }
        Ok(explained)
    }

    fn message(self) -> Result<RateLimitRequest, Problem> {
        let descriptors = self.descriptors.into_iter().map(CallDescriptor::message);
        Ok(RateLimitRequest {
            domain: self.domain.as_str().to_owned(),
            descriptors: descriptors.collect::<Result<_, _>>()?,
            hits_addend: self.hits_addend.map_or(Ok(0), |hits| number("hits_addend", hits))?,
        })
    }
}

impl CallDescriptor<'_> {
    fn message(self) -> Result<RateLimitDescriptor, Problem> {
        let entry = |entry: CallEntry<'_>| Entry {
            key: entry.key.as_str().to_owned(),
            value: entry.value.as_str().to_owned(),
        };
        Ok(RateLimitDescriptor {
            entries: self.entries.into_iter().map(entry).collect(),
            limit: self.limit.map(CallLimit::message).transpose()?,
            hits_addend: self.hits_addend.map(|hits| hits.0),
            is_negative_hits: self.is_negative_hits.unwrap_or(false),
        })
    }
}

impl CallLimit<'_> {
    fn message(self) -> Result<RateLimitOverride, Problem> {
        let unit = envoy::json_names().find(|(name, _)| *name == self.unit.as_str());
        let Some((_, unit)) = unit else {
            let names: Vec<_> = envoy::json_names().map(|(name, _)| name).collect();
            return Err(Problem::bad_request(format_args!(
                "the unit of a limit is one of {}",
                names.join(", ")
            )));
        };
        let requests_per_unit = number("requests_per_unit", self.requests_per_unit)?;
        Ok(RateLimitOverride { requests_per_unit, unit })
    }
}

fn number(name: &str, Integer(number): Integer) -> Result<u32, Problem> {
    u32::try_from(number).map_err(|_| {
        Problem::bad_request(format_args!("{name} is {number}; it must be at most {}", u32::MAX))
    })
}
