use smallvec::SmallVec;
use tollgate::Timestamp;
use tollgate::algorithm::Word;

use super::state::{FIRST_VERSION, newer};
use crate::State;
use crate::engine::{EngineError, Fault, Found, Reply};

/// Reads what the [script](crate::engine::scripts::RUN) answers to so many entries.
///
/// # Errors
///
/// If it is not such an answer, or tells of a state that this version cannot read.
pub fn reply(bytes: &[u8], entries: usize) -> Result<Reply, EngineError> {
    let mut rest = Rest(bytes);
    let now = rest.moment()?;
    let mut answers = SmallVec::new();
    for _ in 0..entries {
        answers.push(rest.found()?);
    }
    rest.end()?;
    Ok(Reply { now, answers })
}

/// Reads when something was [first asked for](crate::engine::scripts::BORN).
///
/// # Errors
///
/// If it is not such an answer, or is of another version.
pub fn born(bytes: &[u8]) -> Result<Timestamp, EngineError> {
    let mut rest = Rest(bytes);
    match rest.byte()? {
        FIRST_VERSION => {}
        version => return Err(newer("birth", version)),
    }
    let born = rest.moment()?;
    rest.end()?;
    Ok(born)
}

/// What is still to be read of a reply.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn found(&mut self) -> Result<Found, EngineError> {
        Ok(match self.byte()? {
            0 => Found::Passed(Word::from_bits(self.number()?)),
            1 => Found::Denied(Word::from_bits(self.number()?)),
            2 => {
                let length = self.byte()?;
                Found::Other(State::from_bytes(self.take(length.into())?)?)
            }
            3 => Found::Gone,
            _ => return Err(nonsense()),
        })
    }

    fn moment(&mut self) -> Result<Timestamp, EngineError> {
        match self.number()? {
            nanos if nanos <= Timestamp::MAX.as_nanos() => Ok(Timestamp::from_nanos(nanos)),
            _ => Err(nonsense()),
        }
    }

    fn number(&mut self) -> Result<u64, EngineError> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    fn byte(&mut self) -> Result<u8, EngineError> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], EngineError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(nonsense)?;
        self.0 = rest;
        Ok(taken)
    }

    fn end(&self) -> Result<(), EngineError> {
        if self.0.is_empty() { Ok(()) } else { Err(nonsense()) }
    }
}

fn nonsense() -> EngineError {
    let text = "the engine's answer is not one of Tollgate's scripts; \
                is it a Redis or a Valkey server, with no proxy that changes answers?";
    EngineError::new(Fault::Nonsense, text)
}
