//! What stands in the path and the query of a request.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::problem::Problem;

pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) kind: ParameterType,
    pub(super) description: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterType {
    /// A text.
    Text,
    /// A text, as often as there are parts.
    Texts,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A whole number within these bounds.
    Whole(u64, u64),
}

pub(super) type Query = Vec<(&'static str, String)>;

pub(super) fn segment<'a>(name: &str, text: &'a str) -> Result<Cow<'a, str>, Problem> {
    percent_decode_str(text).decode_utf8().map_err(|_| not_text(name))
}

/// The parameters of a query in their order. Each must be one of those that are known.
pub(super) fn query(known: &[Parameter], text: Option<&str>) -> Result<Query, Problem> {
    let mut parameters = Query::new();
    for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded("the name of a parameter", name)?;
        let parameter = known.iter().find(|known| known.name == name);
        let parameter = parameter.ok_or_else(|| unknown(known, &name))?;
        let is_there = parameters.iter().any(|(given, _)| *given == parameter.name);
        if is_there && parameter.kind != ParameterType::Texts {
            return Err(Problem::bad_request(format_args!("duplicate query parameter {name}")));
        }
        parameters.push((parameter.name, decoded(&name, value)?));
    }
    Ok(parameters)
}

/// A text as forms are sent.
fn decoded(name: &str, text: &str) -> Result<String, Problem> {
    let text = text.replace('+', " ");
    let text = percent_decode_str(&text).decode_utf8().map_err(|_| not_text(name))?;
    Ok(text.into_owned())
}

fn unknown(known: &[Parameter], name: &str) -> Problem {
    let known: Vec<_> = known.iter().map(|known| known.name).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Problem::bad_request(format_args!("unknown query parameter {name:?}; known: {known}"))
}

/// Policies are text, and so is whatever they are asked about.
fn not_text(name: &str) -> Problem {
    Problem::bad_request(format_args!("{name} is not UTF-8 after percent-decoding"))
}
