//! Which requests a limit, or a class, is for.

use std::collections::BTreeMap;

use http::Method;
use http::header::{HeaderName, HeaderValue};

use super::Compiler;
use crate::config::spec::{At, Match};
use crate::policy::route::{HostPattern, PathSpelling, Pattern};
use crate::policy::rule::Matches;

impl Compiler<'_> {
    /// What requests must have.
    pub(super) fn matches(
        &mut self,
        place: &str,
        written: &Match,
        spelling: &PathSpelling,
    ) -> Matches {
        let paths = self.each(&written.path, place, |text| Pattern::parse(text, spelling));
        Matches { paths, ..self.conditions(place, written) }
    }

    /// The same without paths.
    pub(super) fn conditions(&mut self, place: &str, written: &Match) -> Matches {
        Matches {
            methods: self.each(&written.method, place, method),
            hosts: self.each(&written.host, place, HostPattern::parse),
            headers: self.headers(place, &written.header),
            paths: Vec::new(),
        }
    }

    fn headers(
        &mut self,
        place: &str,
        written: &BTreeMap<String, At<String>>,
    ) -> Vec<(HeaderName, Option<HeaderValue>)> {
        let mut headers = Vec::new();
        for (name, at) in written {
            let name_at = At { value: name.clone(), span: at.span.clone() };
            let Some(name) = self.header_name(place, &name_at) else { continue };
            if at.value == "*" {
                headers.push((name, None));
                continue;
            }
            let value = HeaderValue::from_str(&at.value)
                .map_err(|_| format!("{place}: the header {name} cannot have this value"));
            headers.extend(self.take(at, value).map(|value| (name, Some(value))));
        }
        headers
    }
}

fn method(text: &str) -> Result<Method, String> {
    let upper = text.to_ascii_uppercase();
    match Method::from_bytes(text.as_bytes()) {
        Ok(method) if text == upper => Ok(method),
        Ok(_) => Err(format!("methods are in capitals; write {upper:?} for {text:?}")),
        Err(_) => Err(format!("{text:?} is not a method; write one such as \"GET\"")),
    }
}
