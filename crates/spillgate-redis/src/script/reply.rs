use smallvec::SmallVec;
use spillgate::Timestamp;
use spillgate::algorithm::Word;

use super::state::{corrupt, expect_version};
use crate::backend::{Alive, BackendError, Fault, Found, Reply, Result};
use crate::{Fingerprint, State};

/// Decodes the reply of the [script](crate::script::RUN) to so many entries.
///
/// # Errors
///
/// If it is malformed, or holds a state that this version cannot read.
pub fn reply(bytes: &[u8], entries: usize) -> Result<Reply> {
    let mut rest = Rest(bytes);
    let now = rest.moment()?;
    let mut answers = SmallVec::new();
    for _ in 0..entries {
        answers.push(rest.found()?);
    }
    rest.end()?;
    Ok(Reply { now, answers })
}

/// Decodes the reply to an [announcement](crate::script::ANNOUNCE).
///
/// # Errors
///
/// If it is malformed.
pub fn alive(bytes: &[u8], lists: bool) -> Result<Alive> {
    let mut rest = Rest(bytes);
    let count = rest.small_number()?;
    let mut others = lists.then(Vec::new);
    while let Some(others) = others.as_mut().filter(|_| !rest.0.is_empty()) {
        let (count, length) = (rest.small_number()?, rest.byte()?);
        others.push((Fingerprint::from_bytes(rest.take(length.into())?), count));
    }
    rest.end()?;
    Ok(Alive { count, others, other_prefixes: 0 })
}

/// The version of a birth.
const BORN_VERSION: u8 = 1;

/// Decodes when a limit was [first used](crate::script::BORN).
///
/// # Errors
///
/// If it is malformed, or of another version.
pub fn born(bytes: &[u8]) -> Result<Timestamp> {
    expect_version("birth", bytes, BORN_VERSION)?;
    let mut rest = Rest(bytes);
    let mut born = || {
        let version = rest.byte()?;
        let born = rest.moment()?;
        rest.end().map(|()| (version, born))
    };
    match born() {
        Ok((BORN_VERSION, born)) => Ok(born),
        _ => Err(corrupt("birth of a limit", bytes.len())),
    }
}

/// The rest of a reply.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    fn found(&mut self) -> Result<Found> {
        Ok(match self.byte()? {
            0 => Found::Passed(Word::from_bits(self.number()?)),
            1 => Found::Denied(Word::from_bits(self.number()?)),
            2 => {
                let [high, low] = self.array()?;
                let length = u16::from_be_bytes([high, low]);
                Found::Other(State::from_bytes(self.take(length.into())?)?)
            }
            3 => Found::Gone,
            _ => return Err(nonsense()),
        })
    }

    pub(super) fn moment(&mut self) -> Result<Timestamp> {
        match self.number()? {
            nanos if nanos <= Timestamp::MAX.as_nanos() => Ok(Timestamp::from_nanos(nanos)),
            _ => Err(nonsense()),
        }
    }

    pub(super) fn small_number(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| nonsense())
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(nonsense)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(nonsense()) }
    }
}

fn nonsense() -> BackendError {
    let text = "unexpected reply to a Spillgate script: \
                is it a Redis or a Valkey server, without a proxy that changes replies?";
    BackendError::new(Fault::Nonsense, text)
}
