//! What stands in the path and the query of a request.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::problem::Problem;

/// A segment of a path, decoded.
pub(super) fn segment<'a>(name: &str, text: &'a str) -> Result<Cow<'a, str>, Problem> {
    percent_decode_str(text).decode_utf8().map_err(|_| not_text(name))
}

/// The parameters of a query in their order. Each must be one of those that are known.
pub(super) fn query(
    query: Option<&str>,
    known: &[&'static str],
) -> Result<Vec<(&'static str, String)>, Problem> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = known.iter().find(|known| **known == name).ok_or_else(|| {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Problem::bad_request(format_args!(
                    "the query has a parameter {name:?}; known here: {known}"
                ))
            })?;
            // As forms are sent.
            let value = value.replace('+', " ");
            let value = percent_decode_str(&value).decode_utf8().map_err(|_| not_text(name))?;
            Ok((*name, value.into_owned()))
        })
        .collect()
}

/// Policies are text, and so is whatever they are asked about.
fn not_text(name: &str) -> Problem {
    Problem::bad_request(format_args!("{name} is not UTF-8, once it is percent-decoded"))
}
