//! Which requests and descriptors a limit is for.

use std::collections::BTreeSet;

use http::HeaderValue;

use super::effect::Measure;
use super::value::Value;
use crate::caller::Masked;
use crate::envoy::Pattern;
use crate::policy::rule::Matches;

/// The conditions of a limit for requests.
pub(super) fn values(matches: &Matches) -> Vec<Value> {
    let Matches { methods, hosts, paths, headers } = matches;
    let shown = headers.iter().map(|(name, value)| match value {
        Some(value) => format!("{name}: {}", Masked(value.as_bytes())),
        None => name.to_string(),
    });
    let exact = exact_headers(matches);
    let header = Value::new("match.header", or_any(&shown.collect::<Vec<_>>()));
    vec![
        // In order, since the first that matches names parameters.
        any_of("match.path", &texts(paths)),
        any_of("match.method", &sorted(methods)),
        any_of("match.host", &sorted(hosts)),
        header.exact(format!("{exact:?}")).measure(Measure::AllOf(exact)),
    ]
}

/// Everything that tells conditions from others. It may hold secrets.
pub(super) fn exact(matches: &Matches) -> String {
    let Matches { methods, hosts, paths, headers: _ } = matches;
    let headers = exact_headers(matches);
    format!("{:?} {:?} {:?} {headers:?}", sorted(methods), sorted(hosts), texts(paths))
}

fn exact_headers(matches: &Matches) -> BTreeSet<String> {
    let value = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = matches.headers.iter();
    headers.map(|(name, wanted)| format!("{name}: {:?}", wanted.as_ref().map(value))).collect()
}

/// The entries of a limit for descriptors.
pub(super) fn descriptor_value(pattern: &Pattern) -> Option<Value> {
    match pattern {
        // Told by the limit's name.
        Pattern::Node => None,
        Pattern::Any => Some(Value::new("match.descriptor", "any")),
        Pattern::Entries(entries) => {
            let entries: Vec<_> =
                entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
            Some(Value::new("match.descriptor", entries.join(", ")))
        }
    }
}

fn any_of(key: &'static str, texts: &[String]) -> Value {
    let set = texts.iter().cloned().collect();
    Value::new(key, or_any(texts)).measure(Measure::AnyOf(set))
}

pub(super) fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

fn sorted<T: ToString>(values: &[T]) -> Vec<String> {
    let mut texts = texts(values);
    texts.sort_unstable();
    texts.dedup();
    texts
}

fn or_any(texts: &[String]) -> String {
    if texts.is_empty() { "any".to_owned() } else { texts.join(", ") }
}
