//! A quota from its text.

use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use super::{MAX_SPAN, Quota, UNITS};
use crate::Error;

/// Accepted spellings that are not the canonical one, which [`UNITS`] holds.
const SPELLINGS: &[(&str, &[&str])] = &[
    ("ns", &["nanosecond", "nanoseconds"]),
    ("us", &["µs", "μs", "microsecond", "microseconds"]),
    ("ms", &["millisecond", "milliseconds"]),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("min", &["m", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("day", &["d", "days"]),
    ("week", &["w", "weeks"]),
];

impl FromStr for Quota {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut tokens = Tokens { text, rest: 0 };
        let quota = match tokens.peek() {
            Some((span, "burst")) => {
                tokens.next();
                let burst = tokens.number("a number after \"burst\"")?;
                let whole = span.start..tokens.rest;
                Quota::once(burst).build().map_err(|error| error.at(text, whole))?
            }
            _ => refilled(&mut tokens)?,
        };
        match tokens.peek() {
            None => Ok(quota),
            Some((span, part)) => Err(Error::quota(format!(
                "unexpected {part:?} after the quota; only \"burst N\" may follow"
            ))
            .at(text, span)),
        }
    }
}

/// Reads `AMOUNT/UNIT` or `AMOUNT per [N] UNIT`, and perhaps `burst N`.
fn refilled(tokens: &mut Tokens<'_>) -> Result<Quota, Error> {
    let text = tokens.text;
    let start = tokens.peek().map_or(0, |(span, _)| span.start);
    let amount = tokens.number("an amount such as the 10 of \"10/s\"")?;
    tokens.separator()?;
    let period = tokens.period()?;
    let rate = start..tokens.rest;
    // Checked by itself first, so that an error of the rate points at the rate.
    let mut quota = Quota::per(amount, period);
    quota.burst(1).build().map_err(|error| error.at(text, rate.clone()))?;
    let mut whole = rate;
    if let Some((span, "burst")) = tokens.peek() {
        tokens.next();
        quota = quota.burst(tokens.number("a number after \"burst\"")?);
        whole = span.start..tokens.rest;
    }
    quota.build().map_err(|error| error.at(text, whole))
}

/// Numbers, words and punctuation, with their spans.
struct Tokens<'a> {
    text: &'a str,
    rest: usize,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> Option<(Range<usize>, &'a str)> {
        let rest = self.text.get(self.rest..)?;
        let token = rest.trim_start();
        let start = self.text.len() - token.len();
        let mut characters = token.chars();
        let first = characters.next()?;
        let length = if first.is_ascii_digit() {
            // The dot belongs to the number, so that "0.5" is refused as a whole.
            length_while(token, |c| c.is_ascii_digit() || c == '_' || c == '.')
        } else if first.is_alphabetic() {
            length_while(token, char::is_alphabetic)
        } else {
            first.len_utf8()
        };
        Some((start..start + length, token.get(..length)?))
    }

    fn next(&mut self) -> Option<(Range<usize>, &'a str)> {
        let token = self.peek()?;
        self.rest = token.0.end;
        Some(token)
    }

    /// The next token, or an error that says what is expected.
    fn expect(&mut self, what: &str) -> Result<(Range<usize>, &'a str), Error> {
        let end = self.text.trim_end().len();
        self.next().ok_or_else(|| {
            Error::quota(format!("the quota ends too early; expected {what}"))
                .at(self.text, end..end)
        })
    }

    fn number(&mut self, what: &str) -> Result<u64, Error> {
        let (span, part) = self.expect(what)?;
        let message = if part.contains('.') {
            format!("{part:?} is not a whole number; write \"1 per 2 s\" rather than \"0.5/s\"")
        } else if !part.starts_with(|c: char| c.is_ascii_digit()) {
            format!("{part:?} is not a number; expected {what}")
        } else {
            match part.replace('_', "").parse() {
                Ok(number) => return Ok(number),
                Err(_) => format!("{part} is too large; use at most {MAX_SPAN}"),
            }
        };
        Err(Error::quota(message).at(self.text, span))
    }

    fn separator(&mut self) -> Result<(), Error> {
        let (span, part) = self.expect("\"/\" or \"per\" and a unit of time")?;
        if matches!(part, "/" | "per") {
            return Ok(());
        }
        let message =
            format!("expected \"/\" or \"per\" but found {part:?}; write it as in \"10/s\"");
        Err(Error::quota(message).at(self.text, span))
    }

    /// Reads `[N] UNIT`.
    fn period(&mut self) -> Result<Duration, Error> {
        let start = self.peek().map_or(self.rest, |(span, _)| span.start);
        let count = match self.peek() {
            Some((_, part)) if part.starts_with(|c: char| c.is_ascii_digit()) => {
                self.number("a number of units")?
            }
            _ => 1,
        };
        let (span, part) = self.expect("a unit of time")?;
        let nanos = unit(part).ok_or_else(|| {
            let known = UNITS.iter().rev().map(|(_, name)| *name).collect::<Vec<_>>();
            let (last, others) = known.split_last().unwrap_or((&"", &[]));
            let message = format!("unknown unit {part:?}; use {} or {last}", others.join(", "));
            Error::quota(message).at(self.text, span)
        })?;
        let nanos = count.checked_mul(nanos).ok_or_else(|| {
            Error::quota(format!("{count} {part} is too long a period; use at most 146 years"))
                .at(self.text, start..self.rest)
        })?;
        Ok(Duration::from_nanos(nanos))
    }
}

fn length_while(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn unit(name: &str) -> Option<u64> {
    let spelled = SPELLINGS.iter().find(|(_, others)| others.contains(&name));
    let canonical = spelled.map_or(name, |(canonical, _)| canonical);
    UNITS.iter().find(|(_, unit)| *unit == canonical).map(|(nanos, _)| *nanos)
}
