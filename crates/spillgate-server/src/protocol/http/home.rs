//! `GET /`: the live page for browsers; for others an overview, and a command to try.

use http::header::{HOST, HeaderValue, VARY};
use http::request::Parts;
use spillgate_policy::Policy;

use super::problem::Problem;
use super::reply::{Reply, accepts, text};
use super::routes::Level;
use super::{HttpServer, access, page};

pub(super) fn run(server: &HttpServer, head: &Parts) -> Result<Reply, Problem> {
    if accepts(head, "text/html") {
        return page::page();
    }
    // It names a limit.
    access::admit(&server.app.access(), Level::Client, head)?;
    let mut reply = text(overview(server, head));
    reply.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(reply)
}

fn overview(server: &HttpServer, head: &Parts) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let routes = include_str!("home.txt");
    // The host that the client used.
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if server.has_tls { "https" } else { "http" };
    let bearer = match server.app.access().is_loopback() {
        true => "",
        false => " -H \"authorization: Bearer $SPILLGATE_TOKEN\"",
    };
    let question = question(&server.app.gate().policy());
    format!(
        "Spillgate {version}: is this caller allowed to make this request right now?\n\n{routes}\nTry:\n\n  \
         curl -d '{question}' -H 'content-type: application/json'{bearer} \\\n    \
         {scheme}://{host}/v1/check\n"
    )
}

/// A check that the policy in force can answer.
fn question(policy: &Policy) -> String {
    let named = policy.limits().find_map(|limit| {
        let key = key(policy, limit)?;
        // Names of limits need no escapes.
        Some(format!("{{\"limit\":\"{limit}\"{key}}}"))
    });
    named.unwrap_or_else(|| r#"{"request":{"path":"/","ip":"203.0.113.7"}}"#.to_owned())
}

/// An example key of a limit, if it can be written.
fn key(policy: &Policy, limit: &str) -> Option<String> {
    let value = |part: &str| match part {
        "caller" | "ip" => Some("\"203.0.113.7\""),
        // Has no text, or needs a quota.
        "descriptor" | "key" => None,
        _ => Some("\"42\""),
    };
    let count = policy.parts(limit)?;
    if count == 0 {
        return Some(String::new());
    }
    let values: Vec<_> = policy.per(limit)?.split(", ").map(value).collect::<Option<_>>()?;
    match &values[..] {
        // The key of a descriptor may have commas as well.
        values if values.len() != count => None,
        [only] => Some(format!(",\"key\":{only}")),
        several => Some(format!(",\"key\":[{}]", several.join(","))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_of_what_the_first_limit_is_counted_per() {
        for (per, expected) in [
            ("'caller'", r#","key":"203.0.113.7""#),
            ("'ip'", r#","key":"203.0.113.7""#),
            ("'user'", r#","key":"42""#),
            ("'header:x-tenant'", r#","key":"42""#),
            ("['ip', 'user']", r#","key":["203.0.113.7","42"]"#),
            ("'global'", ""),
        ] {
            let limit = format!("name = 'a'\nby-name = true\nper = {per}\nquota = '1/s'");
            let policy = Policy::from_toml(&format!("[[limit]]\n{limit}\n")).unwrap();
            assert_eq!(question(&policy), format!("{{\"limit\":\"a\"{expected}}}"));
        }
    }
}
