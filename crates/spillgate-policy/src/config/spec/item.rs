//! An entry of a list, and the terms of entries and overrides.

use spillgate::Timestamp;

use super::At;
use crate::Terms;

/// An entry of a list: a text, or a table with its terms.
#[derive(Clone)]
pub(crate) struct ListItem {
    pub(crate) entry: At<String>,
    /// In a box: lists are long, and few entries have any.
    pub(crate) terms: Option<Box<WrittenTerms>>,
}

/// Until when an entry or an override counts, and why it is there.
#[derive(Clone, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WrittenTerms {
    /// When it ends: a time with its zone, such as `2027-01-01T00:00:00Z`. Default: never.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) expires: Option<Timestamp>,
    /// Why it is there, in at most 256 bytes.
    pub(crate) comment: Option<At<String>>,
}

impl From<Terms> for WrittenTerms {
    fn from(Terms { until, comment }: Terms) -> Self {
        Self { expires: until, comment: comment.map(At::from) }
    }
}

impl From<At<String>> for ListItem {
    fn from(entry: At<String>) -> Self {
        Self { entry, terms: None }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ListItem {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ListItem".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let entry = "An address, a range, `key:NAME` or `user:NAME`.";
        let expires = "When the entry ends: a time with its zone. Default: never.";
        let comment = "Why it is there, in at most 256 bytes.";
        schemars::json_schema!({
            "oneOf": [
                { "type": "string", "description": entry },
                {
                    "type": "object",
                    "properties": {
                        "entry": { "type": "string", "description": entry },
                        "expires": { "type": "string", "description": expires },
                        "comment": { "type": "string", "description": comment },
                    },
                    "required": ["entry"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
