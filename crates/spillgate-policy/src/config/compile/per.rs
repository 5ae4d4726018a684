//! What a limit for requests is counted by.

use http::header::HeaderName;

use super::Compiler;
use crate::config::spec::{API_KEY, At, Limit, USER};
use crate::policy::identity::{Accepts, CallerKind, Identifier};
use crate::policy::part::{Part, Per};
use crate::policy::route::Pattern;
use crate::suggest::hint;

impl Compiler<'_> {
    /// What the limit is counted by. `identifier` names the callers of requests, if any meet
    /// the limit.
    pub(super) fn per(
        &mut self,
        place: &str,
        limit: &Limit,
        paths: &[Pattern],
        identifier: Option<&Identifier>,
    ) -> Per {
        let mut parts = Per::new();
        let Some(written) = &limit.per else {
            if !limit.is_of_service() {
                parts.push(Part::Caller);
            }
            return parts;
        };
        for at in written {
            if at.value == "global" {
                if written.len() > 1 {
                    self.report(at, format!("{place}, per: \"global\" stands alone"));
                }
                continue;
            }
            let part = part(&at.value).map_err(|why| format!("{place}, per: {why}"));
            let Some(part) = self.take(at, part) else { continue };
            if parts.contains(&part) {
                self.report(at, format!("{place}, per: {:?} is there twice", at.value));
                continue;
            }
            if let Part::Path(name) = &part {
                self.check_parameter(place, at, name, paths);
            }
            if let Some(identifier) = identifier {
                self.check_source(place, at, &part, identifier);
            }
            parts.push(part);
        }
        parts
    }

    /// Requests must be able to have a key or a user: if none can, all of them share one count.
    fn check_source(&mut self, place: &str, at: &At<String>, part: &Part, identifier: &Identifier) {
        let (kind, header) = match part {
            Part::ApiKey => (CallerKind::ApiKey, API_KEY),
            Part::User => (CallerKind::User, USER),
            _ => return,
        };
        if self.is_partial || identifier.can_name(kind) {
            return;
        }
        let key = &at.value;
        let remedy = match identifier.named_by(kind).map(|named_by| &named_by.accepts) {
            Some(Accepts::Never) => {
                format!("name its header in `identity`, as in {key} = {{ header = {header:?} }}")
            }
            _ => format!(
                "`identity` believes {key} from trusted proxies or a list alone, and that is \
                 empty; name the `trusted-proxies`, or what to `accept`"
            ),
        };
        self.report(
            at,
            format!(
                "{place}, per: no request has a believed {key:?}, so all would share one count; \
                 {remedy}, or write `by-name = true` if the limit is only asked by its name"
            ),
        );
    }

    /// A path's parameter must be in every pattern of the limit.
    fn check_parameter(&mut self, place: &str, at: &At<String>, name: &str, paths: &[Pattern]) {
        let without = paths.iter().find(|path| path.parameter(name).is_none());
        if let Some(path) = without {
            let hint = hint(name, path.parameters());
            self.report(at, format!("{place}, per: the path {path} has no {{{name}}}{hint}"));
        } else if paths.is_empty() {
            self.report(
                at,
                format!("{place}, per: \"path:{name}\" needs a `match.path` with {{{name}}} in it"),
            );
        }
    }
}

fn part(text: &str) -> Result<Part, String> {
    const KNOWN: [&str; 7] =
        ["caller", "ip", "api-key", "user", "header:NAME", "path:PARAMETER", "global"];
    Ok(match text.split_once(':') {
        None if text == "caller" => Part::Caller,
        None if text == "ip" => Part::Ip,
        None if text == "api-key" => Part::ApiKey,
        None if text == "user" => Part::User,
        Some(("header", name)) => Part::Header(
            HeaderName::from_bytes(name.as_bytes())
                .map(Box::new)
                .map_err(|_| format!("{name:?} is not the name of a header"))?,
        ),
        Some(("path", name)) if !name.is_empty() => Part::Path(name.into()),
        Some(("descriptor", _)) => {
            return Err(format!("{text:?} needs a `match.domain`: requests have no descriptors"));
        }
        _ => return Err(format!("unknown {text:?}{}", hint(text, KNOWN))),
    })
}
