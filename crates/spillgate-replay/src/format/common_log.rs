//! The common log format and what extends it.

use smallvec::smallvec;
use spillgate::Timestamp;

use super::request::{RequestLine, address, present, present_text, quoted, request_line, unescape};
use super::{Context, time};
use crate::record::Headers;
use crate::{Record, Skip};

/// The time of the last line: most lines of a busy log have it, too.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    text: [u8; 26],
    time: Option<Timestamp>,
}

impl Cache {
    /// `17/Nov/2026:04:32:40 +0000`.
    #[inline]
    fn time(&mut self, text: &[u8; 26], context: &Context) -> Option<Timestamp> {
        if self.text != *text || self.time.is_none() {
            self.time = time::common(text, &context.zone).map(|(time, _)| time);
            self.text = *text;
        }
        self.time
    }
}

/// `HOST IDENT USER [TIME] "REQUEST" STATUS BYTES "REFERER" "AGENT" "FORWARDED"`; what follows the
/// status is optional.
#[inline]
pub(super) fn common<'p>(
    line: &'p [u8],
    context: &Context,
    cache: &mut Cache,
    scratch: &'p mut [Vec<u8>; 3],
) -> Result<Record<'p>, Skip> {
    let space = memchr::memchr(b' ', line).ok_or(Skip::Malformed)?;
    let (mut host, mut rest) = line.split_at(space);
    let mut peer = address(host);
    if peer.is_err()
        && let Some(message) = after_tag(line)
    {
        (host, rest) = message.split_at(memchr::memchr(b' ', message).ok_or(Skip::Malformed)?);
        peer = address(host);
    }
    let (user, time, rest) = user_and_time(rest, context, cache)?;
    let (request, rest) = quoted(rest).ok_or(Skip::Malformed)?;
    let status = status(rest).ok_or(Skip::Malformed)?;
    let [target, tail @ ..] = scratch;
    let headers = headers(rest, context, tail);
    let time = time.ok_or(Skip::Time)?;
    let peer = peer?;
    let request = match memchr::memchr(b'\\', request) {
        None => request,
        Some(_) => {
            unescape(request, target);
            target
        }
    };
    let RequestLine { method, path, host } = request_line(request)?;
    let user = present(user);
    Ok(Record { time, is_whole_second: true, peer, method, path, host, user, status, headers })
}

/// What follows the beginning that syslog writes: `TIME HOST TAG: `.
#[cold]
fn after_tag(line: &[u8]) -> Option<&[u8]> {
    let bracket = memchr::memmem::find(line, b"] \"")?;
    let end = memchr::memmem::find(&line[..bracket], b": ")?;
    let words = line[..end].split(|byte| *byte == b' ').count();
    let begins = line.first().is_some_and(|first| first.is_ascii_alphanumeric() || *first == b'<');
    (begins && words >= 3).then(|| &line[end + 2..])
}

/// `VHOST:PORT` before the common format.
pub(super) fn vhost<'p>(
    line: &'p [u8],
    context: &Context,
    cache: &mut Cache,
    scratch: &'p mut [Vec<u8>; 3],
) -> Result<Record<'p>, Skip> {
    let space = memchr::memchr(b' ', line).ok_or(Skip::Malformed)?;
    let record = common(&line[space + 1..], context, cache, scratch)?;
    Ok(Record { host: record.host.or_else(|| present_text(&line[..space])), ..record })
}

/// The user, the time if it is one, and what follows.
type UserAndTime<'l> = (&'l [u8], Option<Timestamp>, &'l [u8]);

/// ` IDENT USER [TIME] "`, and what follows. A user may hold anything but a quote, so only what is
/// in front of a quote is the time.
#[inline]
fn user_and_time<'l>(
    text: &'l [u8],
    context: &Context,
    cache: &mut Cache,
) -> Result<UserAndTime<'l>, Skip> {
    let mut from = 0;
    loop {
        let place = from + memchr::memchr(b'[', &text[from..]).ok_or(Skip::Malformed)?;
        from = place + 1;
        let Some((time, rest)) = text[from..].split_first_chunk::<26>() else {
            return Err(Skip::Malformed);
        };
        if let [b']', b' ', b'"', rest @ ..] = rest {
            let before = text[..place].trim_ascii();
            // After the identity, which nobody sends.
            let space = memchr::memchr(b' ', before).ok_or(Skip::Malformed)?;
            return Ok((&before[space + 1..], cache.time(time, context), rest));
        }
    }
}

/// ` 200 …`, also ` -` where there was no response.
#[inline]
fn status(text: &[u8]) -> Option<u16> {
    match text {
        [b' ', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..]
            if rest.first().is_none_or(|next| *next == b' ') =>
        {
            let digit = |digit: &u8| u16::from(digit - b'0');
            Some(digit(a) * 100 + digit(b) * 10 + digit(c))
        }
        [b' ', b'-', ..] => Some(0),
        _ => None,
    }
}

/// The headers at the end, if the policy reads any.
#[inline]
fn headers<'p>(rest: &'p [u8], context: &Context, scratch: &'p mut [Vec<u8>]) -> Headers<'p> {
    let places = [context.referer, context.agent, context.forwarded];
    if places == [None; 3] {
        return Headers::new();
    }
    let mut headers: Headers<'p> = smallvec![];
    let Some(mut place) = memchr::memchr(b'"', rest) else { return headers };
    let mut rest = rest;
    let mut scratch = scratch.iter_mut();
    for wanted in places {
        let Some((value, after)) = rest.get(place + 1..).and_then(quoted) else { break };
        if let (Some(wanted), Some(value)) = (wanted, present(value)) {
            match (memchr::memchr(b'\\', value), scratch.next()) {
                (Some(_), Some(plain)) => {
                    unescape(value, plain);
                    headers.push((wanted, plain));
                }
                _ => headers.push((wanted, value)),
            }
        }
        // Traefik goes on with a number.
        if !after.starts_with(b" \"") {
            break;
        }
        (rest, place) = (after, 1);
    }
    headers
}
