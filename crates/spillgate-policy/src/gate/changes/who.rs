//! Whom a limit is for.

use super::matches::texts;
use crate::envoy::Pattern;
use crate::policy::Part;
use crate::policy::rule::{Matches, Rule};

/// `every caller of POST /login`, `all callers together`, `descriptors of domain edge with path=*`.
pub(super) fn of(rule: &Rule) -> String {
    if rule.is_by_name {
        return format!("checks that name it, {}", counted(&rule.per));
    }
    if let Some(scope) = &rule.scope {
        let domain = &scope.domain;
        let which = match &scope.pattern {
            Pattern::Any => format!("every descriptor of domain {domain}"),
            Pattern::Node => format!("descriptors that end at {}", rule.name),
            Pattern::Entries(entries) => {
                let entries =
                    entries.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
                format!("descriptors of domain {domain} with {}", entries.join(", "))
            }
        };
        return format!("{which}, {}", counted(&rule.per));
    }
    let requests = requests(&rule.matches);
    let of = match rule.matches.methods.is_empty() && rule.matches.paths.is_empty() {
        _ if requests.is_empty() => String::new(),
        // Hosts and headers bring their own word.
        true => format!(" {requests}"),
        false => format!(" of {requests}"),
    };
    match &rule.per[..] {
        [] => format!("all callers{of} together"),
        per => format!("every {}{of}", per.iter().map(part).collect::<Vec<_>>().join(" and ")),
    }
}

/// `POST /login, /signin at example.com with header x-beta`; nothing if it is for all.
pub(super) fn requests(matches: &Matches) -> String {
    let Matches { methods, hosts, paths, headers } = matches;
    let (methods, paths) = (texts(methods).join("|"), texts(paths).join(", "));
    let head: Vec<_> = [methods, paths].into_iter().filter(|text| !text.is_empty()).collect();
    let mut parts = Vec::from_iter((!head.is_empty()).then(|| head.join(" ")));
    if !hosts.is_empty() {
        parts.push(format!("at {}", texts(hosts).join(", ")));
    }
    if !headers.is_empty() {
        let names: Vec<_> = headers.iter().map(|(name, _)| name.to_string()).collect();
        parts.push(format!("with header {}", names.join(" and ")));
    }
    parts.join(" ")
}

fn counted(per: &[Part]) -> String {
    match per {
        [] => "all together".to_owned(),
        per => format!("each {} apart", per.iter().map(part).collect::<Vec<_>>().join(" and ")),
    }
}

fn part(part: &Part) -> String {
    match part {
        Part::Caller => "caller".to_owned(),
        Part::Ip => "address".to_owned(),
        Part::ApiKey => "API key".to_owned(),
        Part::User => "user".to_owned(),
        Part::Header(name) => format!("value of header {name}"),
        Part::Path(name) => format!("{{{name}}}"),
        Part::Entry(key) => format!("value of {key}"),
        Part::Level(level) => format!("value of {}", level.1),
        Part::Descriptor => "descriptor".to_owned(),
        Part::Key => "key".to_owned(),
    }
}
