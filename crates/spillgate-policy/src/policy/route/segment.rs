//! One segment of a pattern.

use super::path::decode;
use super::spelling::{IgnoreCase, PathSpelling};

/// What a pattern has between two slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Literal(Box<[u8]>),
    /// `{name}`
    One(Box<str>),
    /// `{*name}`
    Rest(Box<str>),
}

impl Segment {
    /// The error says what is wrong, and what would be right.
    pub(super) fn parse(part: &str, spelling: &PathSpelling) -> Result<Self, String> {
        let inner = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        match inner {
            Some(inner) if !inner.contains(['{', '}']) => Self::parameter(part, inner),
            _ => Self::literal(part, spelling),
        }
    }

    fn parameter(part: &str, inner: &str) -> Result<Self, String> {
        let (star, name) = inner.strip_prefix('*').map_or(("", inner), |name| ("*", name));
        if name.is_empty() {
            return Err(format!(
                "the parameter {part:?} has no name; write it like \"{{{star}name}}\""
            ));
        }
        let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if let Some(odd) = name.chars().find(|c| !belongs(*c)) {
            return Err(format!(
                "the name of the parameter {part:?} has a {odd:?}; use letters, digits, '_' and '-'"
            ));
        }
        Ok(if star.is_empty() { Self::One(name.into()) } else { Self::Rest(name.into()) })
    }

    fn literal(part: &str, spelling: &PathSpelling) -> Result<Self, String> {
        let text = single_braces(part)?;
        // Taken for text, what other routers take for a parameter would match nothing.
        if part.contains('*') {
            return Err(format!(
                "the segment {part:?} has a '*'; write \"{{*rest}}\" for the rest of the path, \
                 \"{{name}}\" for one segment, or \"%2A\" for the character"
            ));
        }
        if let Some(name) = part.strip_prefix(':') {
            return Err(format!(
                "the segment {part:?} begins with a ':'; write \"{{{name}}}\" for a parameter, \
                 or \"%3A{name}\" for the text"
            ));
        }
        if spelling.strip_parameters && part.contains(';') {
            return Err(format!(
                "the segment {part:?} has a ';', and what follows one does not count; leave it \
                 out, write \"%3B\" for the character, or set `strip-parameters = false` in \
                 [path-spelling]"
            ));
        }
        let mut literal = Vec::with_capacity(text.len());
        decode(text.as_bytes(), spelling, &mut literal);
        if spelling.ignore_case != IgnoreCase::Never {
            literal.make_ascii_lowercase();
        }
        Ok(Self::Literal(literal.into()))
    }

    /// The name of a parameter.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::One(name) | Self::Rest(name) => Some(name),
        }
    }
}

/// Makes every doubled brace a single one.
fn single_braces(part: &str) -> Result<String, String> {
    let mut text = String::with_capacity(part.len());
    let mut characters = part.chars().peekable();
    while let Some(character) = characters.next() {
        let brace = matches!(character, '{' | '}');
        if brace && characters.next_if_eq(&character).is_none() {
            let fault = match character {
                '{' if part.contains('}') => "has a parameter that does not fill it",
                '{' => "has a brace that is not closed",
                _ => "has a brace that is not opened",
            };
            return Err(format!(
                "the segment {part:?} {fault}; write \"{{name}}\" for a whole segment, \
                 or \"{character}{character}\" for the character"
            ));
        }
        text.push(character);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &[u8]) -> Segment {
        Segment::Literal(text.into())
    }

    #[test]
    fn a_segment_is_a_literal_or_a_parameter() {
        let cases = [
            ("a", literal(b"a")),
            ("", literal(b"")),
            ("%2e%41%2f%ff%zz", literal(b".a%2f\xff%zz")),
            ("{{id}}", literal(b"{id}")),
            ("a{{b", literal(b"a{b")),
            ("%7Bid%7D", literal(b"{id}")),
            ("a:b", literal(b"a:b")),
            ("%3Aid%2A", literal(b":id*")),
            ("{id}", Segment::One("id".into())),
            ("{User_id-2}", Segment::One("User_id-2".into())),
            ("{*rest}", Segment::Rest("rest".into())),
        ];
        for (part, expected) in cases {
            assert_eq!(
                Segment::parse(part, &PathSpelling::default()).unwrap(),
                expected,
                "{part:?}"
            );
        }
    }

    /// Parts that are no segments, and what the message must say.
    const BAD: &[(&str, &[&str])] = &[
        ("{id}.json", &["\"{id}.json\"", "does not fill it", "\"{name}\" for a whole segment"]),
        ("{*rest}.json", &["\"{*rest}.json\"", "does not fill it"]),
        ("v{n}", &["\"v{n}\"", "does not fill it"]),
        ("{a}{b}", &["\"{a}{b}\"", "does not fill it"]),
        ("{{{a}}}", &["does not fill it"]),
        ("{id", &["\"{id\"", "not closed", "\"{{\""]),
        ("id}", &["\"id}\"", "not opened", "\"}}\""]),
        ("{{}", &["\"{{}\"", "not opened"]),
        ("{}", &["\"{}\"", "no name", "\"{name}\""]),
        ("{*}", &["\"{*}\"", "no name", "\"{*name}\""]),
        ("{user id}", &["\"{user id}\"", "' '", "letters, digits, '_' and '-'"]),
        ("{id:int}", &["\"{id:int}\"", "':'"]),
        ("{**a}", &["\"{**a}\"", "'*'"]),
        ("{é}", &["'é'"]),
        ("*", &["\"*\"", "\"{*rest}\"", "\"{name}\""]),
        ("*.css", &["\"*.css\"", "\"%2A\""]),
        ("a;v=1", &["\"a;v=1\"", "\"%3B\"", "strip-parameters"]),
        (":id", &["\":id\"", "\"{id}\"", "\"%3Aid\""]),
    ];

    #[test]
    fn a_bad_segment_is_refused_with_a_reason() {
        for (part, reasons) in BAD {
            let message = Segment::parse(part, &PathSpelling::default()).unwrap_err();
            for reason in *reasons {
                assert!(message.contains(reason), "{part:?}: {message:?} lacks {reason:?}");
            }
        }
    }
}
