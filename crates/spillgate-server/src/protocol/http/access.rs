use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};

use super::problem::Problem;
use super::routes::Level;
use crate::Access;

/// Refuses cross-origin requests, and those without a required token.
pub(super) fn admit(access: &Access, level: Level, head: &Parts) -> Result<(), Problem> {
    let host = only(&head.headers, &HOST)?.ok_or_else(|| Problem::bad_request("missing Host"))?;
    check_host(access, host)?;
    // A target in absolute-form has a host, too.
    if let Some(authority) = head.uri.authority() {
        check_host(access, authority.as_str())?;
    }
    // In requests of proxies, the origin is that of their clients.
    if level != Level::Proxy && head.headers.contains_key(ORIGIN) {
        let origin = only(&head.headers, &ORIGIN)?;
        if !is_own(origin.unwrap_or_default(), host) {
            return Err(Problem::forbidden("cross-origin request refused"));
        }
    }
    check_level(access, level, || only(&head.headers, &AUTHORIZATION))
}

pub(super) fn check_host(access: &Access, host: &str) -> Result<(), Problem> {
    if access.answers_to(without_port(host)) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::MISDIRECTED_REQUEST,
        format_args!(
            "this server does not answer to the host {host:?}, so that no web page can have a name \
             of its own lead here; use the server's address, or add the name to `hosts` in the \
             server's configuration"
        ),
    ))
}

pub(super) fn check_level<'h>(
    access: &Access,
    level: Level,
    authorization: impl FnOnce() -> Result<Option<&'h str>, Problem>,
) -> Result<(), Problem> {
    let is_open = match level {
        Level::Probe | Level::Page | Level::Proxy => true,
        Level::Metrics => access.metrics_are_open(),
        Level::Client => access.is_loopback(),
        Level::Admin => false,
    };
    if is_open { Ok(()) } else { check_token(access, authorization()?) }
}

fn check_token(access: &Access, given: Option<&str>) -> Result<(), Problem> {
    if access.has_no_token() {
        return Err(Problem::unauthorized(
            "a token is required, and this server has none configured",
        ));
    }
    let Some(given) = given else {
        return Err(Problem::unauthorized("missing token; send authorization: Bearer TOKEN"));
    };
    let token = given.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    match token {
        Some((_, token)) if access.knows(token.trim().as_bytes()) => Ok(()),
        Some(_) => Err(Problem::unauthorized("invalid token")),
        None => Err(Problem::unauthorized(
            "unsupported Authorization; send authorization: Bearer TOKEN",
        )),
    }
}

/// The value of a header, which must not be duplicate: another program may use the other one.
pub(super) fn only<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::bad_request(format_args!("duplicate header {name}")));
    }
    let value = value
        .to_str()
        .map_err(|_| Problem::bad_request(format_args!("non-ASCII bytes in header {name}")))?;
    Ok(Some(value))
}

/// A host without its port: `[::1]:80` is `[::1]`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_own(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}
