//! How many requests may be in progress at once.

use std::fmt;

use super::At;

/// A number of permits, and how long those of a silent holder live.
#[derive(Clone, Debug)]
pub(crate) struct Concurrent {
    pub(crate) limit: At<u64>,
    pub(crate) ttl: Option<At<String>>,
}

/// What a tier has under a limit: a quota or, if the limit is on concurrency, a number of permits.
#[derive(Clone)]
pub(crate) enum Amount {
    Quota(String),
    Permits(u64),
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(quota) => quota.fmt(f),
            Self::Permits(permits) => permits.fmt(f),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Concurrent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Concurrent".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "oneOf": [
                { "type": "integer", "minimum": 1, "maximum": 1_000_000 },
                {
                    "type": "object",
                    "properties": {
                        "limit": { "type": "integer", "minimum": 1, "maximum": 1_000_000 },
                        "ttl": { "type": "string" },
                    },
                    "required": ["limit"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Amount {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "oneOf": [
                { "type": "string" },
                { "type": "integer", "minimum": 1, "maximum": 1_000_000 },
            ],
        })
    }
}
