//! What is asked of the server.

use std::error::Error;

use http::Method;
use serde_json::json;

use super::super::escape::Untrusted;
use super::super::remote::{Ask, Remote, Unauthorized, segment};
use super::status::{Ban, Bans, LimitTops, Past, Status, Top};
use super::view::Change;

/// What the server says of itself.
pub(super) struct Answer {
    pub(super) status: Status,
    /// Whether callers are named in full.
    pub(super) is_revealed: bool,
    /// None if names are masked, or there are too many.
    pub(super) bans: Option<Vec<Ban>>,
    /// None if it was not asked for, or the server has none.
    pub(super) past: Option<Past>,
}

/// Why there is no answer.
pub(super) enum Failure {
    /// Names are not revealed with this token.
    NotRevealed(String),
    Other(String),
}

/// More bans than this are not listed every second.
pub(super) const MOST_BANS: u64 = 10_000;

pub(super) async fn status(remote: &Remote, reveal: bool) -> Result<Status, Box<dyn Error>> {
    let path = if reveal { "/v1/status?reveal=true" } else { "/v1/status" };
    let answer = remote.send(Ask::new(Method::GET, path)).await?;
    serde_json::from_str(&answer).map_err(|error| {
        format!("{} does not answer {path} as expected: {error}; is it older?", remote.authority())
            .into()
    })
}

/// The callers that were denied most, under one limit or all.
pub(super) async fn top(
    remote: &Remote,
    limit: Option<&str>,
    count: u32,
    reveal: bool,
) -> Result<Top, Box<dyn Error>> {
    let limit = limit.map(|name| format!("&limit={}", segment(name))).unwrap_or_default();
    let reveal = if reveal { "&reveal=true" } else { "" };
    let path = format!("/v1/top?count={count}{limit}{reveal}");
    let answer = remote.send(Ask::new(Method::GET, &path)).await?;
    Ok(serde_json::from_str::<LimitTops>(&answer)?.into())
}

/// Everything that is shown; also what was before, if it is not known.
pub(super) async fn ask(
    remote: &Remote,
    reveal: bool,
    wants_past: bool,
) -> Result<Answer, Failure> {
    let failure = |error: Box<dyn Error>| match error.is::<Unauthorized>() && reveal {
        true => Failure::NotRevealed(error.to_string()),
        false => Failure::Other(error.to_string()),
    };
    let status = status(remote, reveal).await.map_err(failure)?;
    let bans = match status.bans.enforced.saturating_add(status.bans.shadow) {
        _ if !reveal => None,
        0 => Some(Vec::new()),
        1..=MOST_BANS => {
            let answer = remote.send(Ask::new(Method::GET, "/v1/bans")).await.map_err(failure)?;
            serde_json::from_str::<Bans>(&answer).ok().map(|answer| answer.bans)
        }
        _ => None,
    };
    let past = if wants_past { past(remote).await } else { None };
    Ok(Answer { status, is_revealed: reveal, bans, past })
}

async fn past(remote: &Remote) -> Option<Past> {
    let answer = remote.send(Ask::new(Method::GET, "/v1/history?minutes=5")).await.ok()?;
    serde_json::from_str(&answer).ok()
}

/// Says what was done.
pub(super) async fn change(remote: &Remote, change: &Change) -> Result<String, String> {
    let (ask, done) = match change {
        Change::Ban { caller, duration } => {
            let path = format!("/v1/bans/{}", segment(caller.raw()));
            let body = json!({ "ttl": duration, "reason": "spillgate top" });
            (
                remote.send(Ask::new(Method::PUT, &path).body(&body)).await,
                format!("banned {} for {duration}", caller.shown()),
            )
        }
        Change::Lift { caller } => {
            let path = format!("/v1/bans/{}", segment(caller.raw()));
            (
                remote.send(Ask::new(Method::DELETE, &path)).await,
                format!("lifted the ban of {}", caller.shown()),
            )
        }
        Change::Reset { limit, values } => {
            let path = key_path(limit, values);
            (
                remote.send(Ask::new(Method::DELETE, &path)).await,
                format!("reset the caller for {}", limit.shown()),
            )
        }
    };
    ask.map(|_| done).map_err(|error| error.to_string())
}

/// The first value of a key is in the path, others are in the query. The key of a limit for all
/// callers together is `global`.
fn key_path(limit: &Untrusted, values: &[Untrusted]) -> String {
    let mut values = values.iter().map(|value| segment(value.raw()));
    let first = values.next().unwrap_or_else(|| "global".to_owned());
    let others: Vec<_> = values.map(|value| format!("part={value}")).collect();
    let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    format!("/v1/limits/{}/keys/{first}{query}", segment(limit.raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_several_parts_is_encoded() {
        let path = key_path(&"api".into(), &["a/b?".into(), "c&d=é".into(), "".into()]);
        assert_eq!(path, "/v1/limits/api/keys/a%2Fb%3F?part=c%26d%3D%C3%A9&part=");
        assert_eq!(key_path(&"all".into(), &[]), "/v1/limits/all/keys/global");
    }
}
