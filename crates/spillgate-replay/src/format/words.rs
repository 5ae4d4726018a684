//! Formats whose fields are words, some of them quoted.

use smallvec::smallvec;

use super::request::{
    RequestLine, address, address_and_port, present, present_text, quoted, request_line,
    unescape_number_signs,
};
use super::{Context, time};
use crate::record::Headers;
use crate::{Record, Skip};

/// Splits a line at spaces. Quotes and brackets hold words together.
struct Words<'l>(&'l [u8]);

impl<'l> Iterator for Words<'l> {
    type Item = &'l [u8];

    fn next(&mut self) -> Option<&'l [u8]> {
        let text = self.0.trim_ascii_start();
        let (word, rest) = match text {
            [] => return None,
            [b'"', rest @ ..] => quoted(rest)?,
            [b'[', rest @ ..] => rest.split_at_checked(memchr::memchr(b']', rest)?)?,
            _ => text.split_at(memchr::memchr(b' ', text).unwrap_or(text.len())),
        };
        self.0 = rest.strip_prefix(b"]").unwrap_or(rest);
        Some(word)
    }
}

fn number(text: &[u8]) -> u16 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// `[START_TIME] "REQUEST" STATUS FLAGS … "FORWARDED" "AGENT" "ID" "AUTHORITY" "UPSTREAM"`.
///
/// The client is not in it, but the last of those that `X-Forwarded-For` names: Envoy appends whom
/// it was called by, if it is the edge. Envoy does not escape quotes, so a client may write some:
/// a line is malformed if there are two places where the address could be.
pub(super) fn envoy<'p>(line: &'p [u8], context: &Context) -> Result<Record<'p>, Skip> {
    let rest = line.strip_prefix(b"[").ok_or(Skip::Malformed)?;
    let (moment, rest) = split(rest, b"] \"").ok_or(Skip::Malformed)?;
    let (request, rest) = split_request(rest).ok_or(Skip::Malformed)?;
    let status = number(&rest[..3]);
    // The last ones, which clients cannot choose.
    let end = memchr::memrchr(b'"', rest).ok_or(Skip::Malformed)?;
    let (rest, _upstream) = split_last(&rest[..end]).ok_or(Skip::Malformed)?;
    let (rest, authority) = split_last(rest).ok_or(Skip::Malformed)?;
    let (rest, _id) = split_last(rest).ok_or(Skip::Malformed)?;
    let mut places = memchr::memmem::find_iter(rest, SEPARATOR).filter_map(|place| {
        let start = memchr::memrchr(b'"', &rest[..place])? + 1;
        let (before, client) = last(&rest[start..place]);
        Some((before, address(client).ok(), &rest[place + SEPARATOR.len()..]))
    });
    let (time, is_whole_second) = time::iso(moment, &context.zone).ok_or(Skip::Time)?;
    let RequestLine { method, path, host } = request_line(request)?;
    if !rest.contains(&b'"') {
        return Err(Skip::Malformed);
    }
    let mut known = places.by_ref().filter(|(_, client, _)| client.is_some());
    let (before, client, agent) = known.next().ok_or(Skip::Address)?;
    if known.next().is_some() {
        return Err(Skip::Malformed);
    }
    let peer = client.ok_or(Skip::Address)?;
    let host = host.or_else(|| present_text(authority));
    let mut headers = Headers::new();
    headers.extend(context.forwarded.zip(present(before)));
    headers.extend(context.agent.zip(present(agent)));
    Ok(Record { time, is_whole_second, peer, method, path, host, user: None, status, headers })
}

/// What is between two quoted words.
const SEPARATOR: &[u8] = b"\" \"";

/// What is before and after the first of a text.
fn split<'l>(text: &'l [u8], at: &[u8]) -> Option<(&'l [u8], &'l [u8])> {
    let place = memchr::memmem::find(text, at)?;
    Some((&text[..place], &text[place + at.len()..]))
}

fn split_last(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let place = memchr::memmem::rfind(text, SEPARATOR)?;
    Some((&text[..place], &text[place + SEPARATOR.len()..]))
}

/// A request, which may hold quotes but no spaces, up to the status after it.
fn split_request(text: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr::memmem::find_iter(text, b"\" ").find_map(|place| {
        let rest = &text[place + 2..];
        let is_status = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
        (is_status(rest.get(..3)?) && rest.get(3) == Some(&b' ')).then_some((&text[..place], rest))
    })
}

/// A list without its last element, and that one.
fn last(list: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b',', list) {
        Some(comma) => (list[..comma].trim_ascii(), list[comma + 1..].trim_ascii()),
        None => (b"", list.trim_ascii()),
    }
}

/// `CLIENT:PORT [TIME] FRONTEND BACKEND/SERVER TIMERS STATUS … "REQUEST"`, perhaps with the
/// beginning that syslog writes.
///
/// What is not printable, quotes and number signs are written as `#HH`.
pub(super) fn haproxy<'p>(
    line: &'p [u8],
    context: &Context,
    scratch: &'p mut Vec<u8>,
) -> Result<Record<'p>, Skip> {
    // The time is the first bracket that follows an address: syslog writes a process id in others.
    let mut from = 0;
    let (client, open) = loop {
        let place = from + memchr::memmem::find(&line[from..], b" [").ok_or(Skip::Malformed)?;
        let before = &line[..place];
        let word = memchr::memrchr(b' ', before).map_or(before, |space| &before[space + 1..]);
        match address_and_port(word) {
            Ok(client) => break (client, place),
            Err(_) => from = place + 2,
        }
    };
    let mut words = Words(&line[open..]);
    let mut next = || words.next().ok_or(Skip::Malformed);
    let (moment, _frontend, backend) = (next()?, next()?, next()?);
    let (_timers, status) = (next()?, number(next()?));
    if !backend.contains(&b'/') {
        return Err(Skip::Malformed);
    }
    let request = memchr::memmem::find(words.0, b" \"").ok_or(Skip::Malformed)?;
    let request = &words.0[request + 2..];
    // A request that was cut short has no closing quote.
    let end = memchr::memrchr(b'"', request).unwrap_or(request.len());
    let (time, is_whole_second) = time::common(moment, &context.zone).ok_or(Skip::Time)?;
    let request = match memchr::memchr(b'#', &request[..end]) {
        None => &request[..end],
        Some(_) => {
            unescape_number_signs(&request[..end], scratch);
            scratch
        }
    };
    let RequestLine { method, path, host } = request_line(request)?;
    let (user, headers) = (None, Headers::new());
    Ok(Record { time, is_whole_second, peer: client, method, path, host, user, status, headers })
}

/// `TYPE TIME ELB CLIENT:PORT … ELB_STATUS … "REQUEST" "AGENT" … REQUEST_CREATION_TIME …`.
pub(super) fn alb<'p>(line: &'p [u8], context: &Context) -> Result<Record<'p>, Skip> {
    let mut words = Words(line);
    let mut nth = |skipped: usize| words.nth(skipped).ok_or(Skip::Malformed);
    let kind = nth(0)?;
    if !matches!(kind, b"http" | b"https" | b"h2" | b"grpcs" | b"ws" | b"wss") {
        return Err(Skip::Malformed);
    }
    let (ended, client, status) = (nth(0)?, nth(1)?, number(nth(4)?));
    let (request, agent) = (nth(3)?, nth(0)?);
    // Older lines end before it.
    let created = nth(7).ok().and_then(present).unwrap_or(ended);
    let (time, is_whole_second) = time::iso(created, &context.zone).ok_or(Skip::Time)?;
    let peer = address(client)?;
    let RequestLine { method, path, host } = request_line(request)?;
    let headers = match (context.agent, present(agent)) {
        (Some(place), Some(agent)) => smallvec![(place, agent)],
        _ => Headers::new(),
    };
    Ok(Record { time, is_whole_second, peer, method, path, host, user: None, status, headers })
}
