//! `RateLimit` and `RateLimit-Policy` of the IETF's drafts, read leniently: one item that is wrong
//! does not spoil the others, as it would in a strict structured field.

use http::HeaderMap;
use spillgate::Timestamp;

use super::value::{amount, cut, decimal, limit, lines, time};
use super::{AnnouncedLimit, Dialect, Unit, name};

/// A member of a list: `"name";q=100;w=60`, `100;w=60` or `limit=100`.
struct Item<'t> {
    bare: &'t str,
    parameters: Vec<(&'t str, &'t str)>,
}

/// Adds the limits of `RateLimit`, in the form of draft 7 or of later ones.
pub(super) fn limits(headers: &HeaderMap, sent: Timestamp, found: &mut Vec<AnnouncedLimit>) {
    let policies = items(headers, "ratelimit-policy");
    let states = items(headers, "ratelimit");
    found.extend(dictionary(headers, &states, sent));
    for state in states.iter().filter(|state| state.parameter("r").is_some()) {
        let policy = policies.iter().find(|policy| policy.bare == state.bare);
        found.push(AnnouncedLimit {
            dialect: Dialect::RateLimit,
            name: state.name(),
            unit: policy.map_or(Unit::Requests, Item::unit),
            limit: policy.and_then(|policy| limit(policy.parameter("q")?)),
            remaining: state.parameter("r").and_then(amount),
            reset_after: state.parameter("t").and_then(|text| time(text, sent)),
            window: policy.and_then(Item::window),
        });
    }
    found.retain(|it| it.limit.is_some() || it.remaining.is_some());
}

/// `limit=100, remaining=50, reset=30`, as in draft 7.
fn dictionary(
    headers: &HeaderMap,
    members: &[Item<'_>],
    sent: Timestamp,
) -> Option<AnnouncedLimit> {
    let value = |key: &str| {
        let pairs = members.iter().filter_map(|member| member.bare.split_once('='));
        pairs.map(|(name, value)| (name.trim(), value.trim())).find(|pair| pair.0 == key)
    };
    let all = limit(value("limit")?.1)?;
    Some(AnnouncedLimit {
        dialect: Dialect::RateLimit,
        name: None,
        unit: Unit::Requests,
        limit: Some(all),
        remaining: value("remaining").and_then(|(_, text)| amount(text)),
        reset_after: value("reset").and_then(|(_, text)| time(text, sent)),
        window: window_of(headers, all),
    })
}

/// The window of a limit without a name: `RateLimit-Policy: 100;w=60`, or the same in
/// `RateLimit-Limit`.
pub(super) fn window_of(headers: &HeaderMap, limit: u64) -> Option<std::time::Duration> {
    let listed = ["ratelimit-policy", "ratelimit-limit"].map(|name| items(headers, name));
    let same = |item: &&Item<'_>| amount(item.bare) == Some(limit);
    listed.iter().flatten().filter(same).find_map(Item::window)
}

impl<'t> Item<'t> {
    fn parse(text: &'t str) -> Self {
        let mut parts = outside_quotes(text, ';').map(str::trim);
        let bare = parts.next().unwrap_or_default();
        let pair =
            |part: &'t str| part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        Self { bare, parameters: parts.filter_map(pair).collect() }
    }

    fn parameter(&self, key: &str) -> Option<&'t str> {
        self.parameters.iter().find(|pair| pair.0 == key).map(|pair| pair.1)
    }

    /// A limit that is counted per partition is another one for each of them.
    fn name(&self) -> Option<Box<str>> {
        let bare = self.bare.trim_matches('"');
        match self.parameter("pk") {
            Some(partition) => name(&format!("{bare}/{partition}")),
            None => name(bare),
        }
    }

    fn unit(&self) -> Unit {
        match self.parameter("qu").map(|unit| unit.trim_matches('"')) {
            None | Some("requests") => Unit::Requests,
            Some("concurrent-requests") => Unit::ConcurrentRequests,
            Some(_) => Unit::Other,
        }
    }

    fn window(&self) -> Option<std::time::Duration> {
        decimal(self.parameter("w")?).map(cut)
    }
}

/// The members of all values of a header, as many as are of use.
fn items<'h>(headers: &'h HeaderMap, header: &str) -> Vec<Item<'h>> {
    const MOST: usize = 2 * super::RateLimitInfo::MAX_LIMITS;
    let members = lines(headers, header).flat_map(|line| outside_quotes(line, ','));
    members.take(MOST).map(|text| Item::parse(text.trim())).collect()
}

/// Splits a text where a separator is outside of quotes.
fn outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |sign| {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => return sign == separator && !is_quoted,
        }
        false
    })
}
