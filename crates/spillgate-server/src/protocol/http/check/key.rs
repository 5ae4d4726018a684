use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// A JSON string, borrowed from the document unless it has escapes.
#[derive(PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(inline)]
pub(in crate::protocol::http) struct Text<'a>(Cow<'a, str>);

/// The key: a text, or a list of texts if the limit is counted per several parts.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
pub(in crate::protocol::http) enum Key<'a> {
    /// The only part.
    One(Text<'a>),
    /// One for each part that the limit is counted per.
    Parts(Vec<Text<'a>>),
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl Text<'_> {
    pub(in crate::protocol::http) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Key<'_> {
    pub(in crate::protocol::http) fn parts(&self) -> Vec<&str> {
        match self {
            Self::One(part) => vec![part.as_str()],
            Self::Parts(parts) => parts.iter().map(Text::as_str).collect(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
        TextVisitor.visit_borrowed_str(text).map(Key::One)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
        TextVisitor.visit_str(text).map(Key::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Key<'de>, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = sequence.next_element()? {
            parts.push(part);
        }
        Ok(Key::Parts(parts))
    }
}
