//! JSON as the OpenAPI document describes it: serde would accept an array for an object, so that
//! `["api", "user:1"]` would spend.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::problem::Problem;

pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    if body.trim_ascii().is_empty() {
        return Err(Problem::bad_request(
            "the body is empty; send JSON as /v1/openapi.json describes it",
        ));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let parsed = T::deserialize(Strict(&mut json));
    parsed.and_then(|parsed| json.end().map(|()| parsed)).map_err(|error| {
        // Arrays and objects have other names in serde.
        let error = error.to_string().replace("invalid type: sequence", "invalid type: array");
        let error = error.replace("invalid type: map", "invalid type: object");
        Problem::bad_request(format_args!(
            "the body is not right: {error}; /v1/openapi.json describes it"
        ))
    })
}

/// A deserializer that accepts only objects for structs.
struct Strict<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Wrapped { visitor, expected: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Wrapped { visitor, expected: Some("an object") })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Wrapped { visitor, expected: Some("an object") })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_seq(Wrapped { visitor, expected: Some("an array") })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Wrapped { visitor, expected: None })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple tuple_struct enum identifier ignored_any
    }
}

/// A visitor whose nested values are strict, too.
struct Wrapped<V> {
    visitor: V,
    /// What errors say, if the visitor's words are those of Rust.
    expected: Option<&'static str>,
}

macro_rules! hand_over {
    ($($visit:ident: $type:ty,)*) => {
        $(fn $visit<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$visit(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Wrapped<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expected {
            Some(expected) => f.write_str(expected),
            None => self.visitor.expecting(f),
        }
    }

    hand_over! {
        visit_bool: bool,
        visit_i64: i64,
        visit_u64: u64,
        visit_f64: f64,
        visit_str: &str,
        visit_borrowed_str: &'de str,
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Strict(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(Strict(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Strict(members))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(Strict(seed))
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(Strict(deserializer))
    }
}

/// A non-negative integer of JSON. `3.0` is one, too: some languages write no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Integer(pub(super) u64);

impl Integer {
    /// A whole number that is written with a decimal point.
    pub(super) fn of_float(number: f64) -> Option<Self> {
        // 2⁶⁴, the first that is too large; all below are exact if they are whole.
        const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;
        let is_whole = number.fract() == 0.0 && (0.0..TOO_LARGE).contains(&number);
        is_whole.then_some(Self(number as u64))
    }
}

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
        Integer::of_float(number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}
