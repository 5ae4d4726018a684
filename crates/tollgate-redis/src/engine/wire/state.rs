use std::ops::RangeInclusive;
use std::time::Duration;

use tollgate::algorithm::Word;
use tollgate::{AlgorithmKind, Quota};

use crate::engine::{EngineError, Fault};
use crate::{State, Terms};

/// The version of what is written here. Whoever changes what the bytes mean raises it, and
/// goes on reading the one before, since nodes of both run side by side during an upgrade.
pub(super) const VERSION: u8 = 1;

/// What a later version may begin with. Texts of others begin with none of these.
pub(super) const LATER: RangeInclusive<u8> = VERSION + 1..=31;

/// Set in the byte of the kind if the terms are an override.
const OVERRIDE: u8 = 0x80;

impl Terms {
    /// How many bytes terms are: version (1), kind (1), amount (8), period in nanoseconds
    /// (8, zero if nothing is ever refilled) and burst (8).
    pub const BYTES: usize = 26;

    /// The terms, for an engine to keep and to compare.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let period = self.quota.period().map_or(0, |period| period.as_nanos() as u64);
        let numbers = [self.quota.amount(), period, self.quota.burst()];
        let mut bytes = [0; Self::BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.kind as u8 | if self.is_override { OVERRIDE } else { 0 };
        for (place, number) in bytes[2..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// The terms that an engine has kept, if they could ever have been written.
    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let [version, kind, numbers @ ..] = bytes;
        let [amount, period, burst] = numbers.as_chunks().0 else { return None };
        let [amount, period, burst] = [amount, period, burst].map(|it| u64::from_be_bytes(*it));
        if *version != VERSION {
            return None;
        }
        let is_override = kind & OVERRIDE != 0;
        let kind = *AlgorithmKind::ALL.get(usize::from(kind & !OVERRIDE))?;
        let quota = match (amount, period) {
            (0, 0) => Quota::once(burst),
            _ => Quota::per(amount, Duration::from_nanos(period)).burst(burst),
        };
        let terms = Self { kind, quota: quota.build().ok()?, is_override };
        terms.algorithm().ok().map(|_| terms)
    }
}

impl State {
    /// How many bytes a state is: its terms, and its word (8).
    pub const BYTES: usize = Terms::BYTES + 8;

    /// The state, for an engine to keep.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (terms, word) = bytes.split_at_mut(Terms::BYTES);
        terms.copy_from_slice(&self.terms.to_bytes());
        word.copy_from_slice(&self.word.to_bits().to_be_bytes());
        bytes
    }

    /// The state that an engine has kept.
    ///
    /// # Errors
    ///
    /// If it is of another version, or no state that could ever have been written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EngineError> {
        let nonsense = || {
            let text = format!(
                "the engine keeps {} bytes that are no state of a caller under this prefix; \
                 use a prefix of your own, or delete the key",
                bytes.len(),
            );
            EngineError::new(Fault::Nonsense, text)
        };
        match bytes.first() {
            Some(&VERSION) => {}
            Some(version) if LATER.contains(version) => return Err(newer("state", *version)),
            _ => return Err(nonsense()),
        }
        let (terms, word) = bytes.split_first_chunk().ok_or_else(nonsense)?;
        let terms = Terms::from_bytes(terms).ok_or_else(nonsense)?;
        let word = word.try_into().map_err(|_| nonsense())?;
        Ok(Self { terms, word: Word::from_bits(u64::from_be_bytes(word)) })
    }
}

/// Something that a later version has written.
pub(super) fn newer(what: &str, version: u8) -> EngineError {
    let text = format!(
        "the engine keeps a {what} of version {version}, and this program reads version \
         {VERSION}; upgrade it, or give it a prefix of its own"
    );
    EngineError::new(Fault::NewerState, text)
}
