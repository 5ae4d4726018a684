use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// A whole number of JSON, from 0 on. `3.0` is one as well: many programs know no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Integer(pub(super) u64);

impl JsonSchema for Integer {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Integer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
    }
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(IntegerVisitor)
    }
}

struct IntegerVisitor;

impl Visitor<'_> for IntegerVisitor {
    type Value = Integer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {}", u64::MAX)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Integer, E> {
        Ok(Integer(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Integer, E> {
        // 2⁶⁴, the first that is too large; all below are exact if they are whole.
        const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;
        if number.fract() == 0.0 && (0.0..TOO_LARGE).contains(&number) {
            return Ok(Integer(number as u64));
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }
}
