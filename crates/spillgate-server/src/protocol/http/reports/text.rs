//! Values of reports, as they are written.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use spillgate::adaptive::Ending;

pub(super) const ENDINGS: &[&str] = &["ok", "failed"];

/// How a call ended.
#[derive(Clone, Copy)]
pub(in crate::protocol::http) struct EndingText(pub(super) Ending);

/// That a call failed.
pub(in crate::protocol::http) struct FailedText;

/// A number of seconds, not yet checked.
#[derive(Clone, Copy)]
pub(in crate::protocol::http) struct Latency(pub(super) f64);

impl FromStr for EndingText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ok" => Ok(Self(Ending::Ok)),
            "failed" => Ok(Self(Ending::Failed)),
            _ => Err(format!("invalid ending {text:?}; use ok or failed")),
        }
    }
}

impl<'de> Deserialize<'de> for EndingText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_f64(LatencyVisitor).map(Self)
    }
}

struct LatencyVisitor;

impl Visitor<'_> for LatencyVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("latency as a number of seconds such as 0.012")
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<f64, E> {
        Ok(seconds)
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<f64, E> {
        Ok(seconds as f64)
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<f64, E> {
        Ok(seconds as f64)
    }
}

macro_rules! schemas {
    ($($type:ty = $name:literal $schema:tt,)*) => {
        $(impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })*
    };
}

schemas! {
    EndingText = "Ending" { "type": "string", "enum": ENDINGS },
    FailedText = "Failed" { "type": "string", "const": "failed" },
    Latency = "Latency" { "type": "number", "minimum": 0, "maximum": 3_600 },
}
