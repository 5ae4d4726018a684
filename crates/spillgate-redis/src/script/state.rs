use std::ops::RangeInclusive;
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::account::SavedPile;
use spillgate::algorithm::Word;
use spillgate::{AlgorithmKind, Quota, Timestamp};

use crate::backend::{BackendError, Fault, Result};
use crate::state::Past;
use crate::{State, Terms};

/// The version of this format. Raise it when the bytes change their meaning: another one is
/// refused.
pub(super) const VERSION: u8 = 3;

/// First bytes of all versions. Texts of other programs begin with none of these.
pub(super) const VERSIONS: RangeInclusive<u8> = 1..=31;

/// Flag in the byte of the kind: an override.
const OVERRIDE: u8 = 0x80;

/// Bytes of a quota: amount, period in nanoseconds (zero if it never refills) and burst, 8 each.
pub(super) const QUOTA_BYTES: usize = 24;

pub(super) fn quota_to_bytes(quota: &Quota) -> [u8; QUOTA_BYTES] {
    let period = quota.period().map_or(0, |period| period.as_nanos() as u64);
    let numbers = [quota.amount(), period, quota.burst()];
    let mut bytes = [0; QUOTA_BYTES];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    bytes
}

/// The quota, if valid.
pub(super) fn quota_from_bytes(bytes: &[u8; QUOTA_BYTES]) -> Option<Quota> {
    let [amount, period, burst] = bytes.as_chunks().0 else { return None };
    let [amount, period, burst] = [amount, period, burst].map(|it| u64::from_be_bytes(*it));
    let quota = match (amount, period) {
        (0, 0) => Quota::once(burst),
        _ => Quota::per(amount, Duration::from_nanos(period)).burst(burst),
    };
    quota.build().ok()
}

impl Terms {
    /// Bytes of terms: version (1), kind (1), amount (8), period in nanoseconds (8, zero if it
    /// never refills) and burst (8).
    pub const BYTES: usize = 2 + QUOTA_BYTES;

    /// The terms as stored.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.kind as u8 | if self.is_override { OVERRIDE } else { 0 };
        bytes[2..].copy_from_slice(&quota_to_bytes(&self.quota));
        bytes
    }

    /// The stored terms, if valid.
    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let [version, kind, quota @ ..] = bytes;
        let terms = Self {
            kind: *AlgorithmKind::ALL.get(usize::from(kind & !OVERRIDE))?,
            quota: quota_from_bytes(quota)?,
            is_override: kind & OVERRIDE != 0,
        };
        (*version == VERSION && terms.algorithm().is_ok()).then_some(terms)
    }
}

/// The bytes of a state.
type Bytes = SmallVec<[u8; State::BYTES]>;

impl State {
    /// Bytes of a state whose word tells all: terms and word (8). What was spent under several
    /// quotas follows: debt (8), when it was written (8) and began (8), and of each quota itself
    /// (24), word (8) and lag in nanoseconds (8).
    pub const BYTES: usize = Terms::BYTES + 8;

    /// The state as stored.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = Bytes::new();
        bytes.extend(self.terms.to_bytes());
        bytes.extend(self.word.to_bits().to_be_bytes());
        if let Some(past) = &self.past {
            past.put_bytes(&mut bytes);
        }
        bytes
    }

    /// Reads a stored state.
    ///
    /// # Errors
    ///
    /// If it is of another version, or invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        expect_version("state", bytes, VERSION)?;
        Self::read(bytes).ok_or_else(|| corrupt("state of a caller", bytes.len()))
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (terms, bytes) = bytes.split_first_chunk()?;
        let (word, past) = number(bytes)?;
        let (terms, word) = (Terms::from_bytes(terms)?, Word::from_bits(word));
        let past = if past.is_empty() { None } else { Some(Box::new(Past::read(past, terms)?)) };
        Some(Self { terms, word, past })
    }
}

impl Past {
    fn put_bytes(&self, bytes: &mut Bytes) {
        for number in [self.debt.to_bits(), self.at.as_nanos(), self.since.as_nanos()] {
            bytes.extend(number.to_be_bytes());
        }
        for pile in &self.piles {
            bytes.extend(quota_to_bytes(&pile.quota));
            bytes.extend(pile.word.to_bits().to_be_bytes());
            let lag = u64::try_from(pile.lag.as_nanos()).unwrap_or(u64::MAX);
            bytes.extend(lag.to_be_bytes());
        }
    }

    fn read(bytes: &[u8], terms: Terms) -> Option<Self> {
        let (debt, bytes) = number(bytes)?;
        let (at, bytes) = moment(bytes)?;
        let (since, mut rest) = moment(bytes)?;
        let mut piles = Vec::new();
        while !rest.is_empty() {
            let (quota, bytes) = rest.split_first_chunk()?;
            let (word, bytes) = number(bytes)?;
            let (lag, bytes) = number(bytes)?;
            let quota = quota_from_bytes(quota)?;
            Terms::new(terms.kind, quota).algorithm().ok()?;
            let (word, lag) = (Word::from_bits(word), Duration::from_nanos(lag));
            piles.push(SavedPile { quota, word, lag });
            rest = bytes;
        }
        Some(Self { debt: Word::from_bits(debt), at, since, piles })
    }
}

/// The number that begins bytes, and the rest.
pub(super) fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}

/// The same for a time.
pub(super) fn moment(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (nanos, rest) = number(bytes)?;
    (nanos <= Timestamp::MAX.as_nanos()).then(|| (Timestamp::from_nanos(nanos), rest))
}

/// Refuses a value of another version.
pub(super) fn expect_version(what: &str, bytes: &[u8], known: u8) -> Result<()> {
    match bytes.first() {
        Some(version) if *version != known && VERSIONS.contains(version) => {
            let text = format!(
                "Redis stores a {what} of version {version}, and this program reads only version \
                 {known}: stop the programs of the other version and delete the keys that begin \
                 with the prefix, or use another prefix; to delete only this {what}, reset the caller"
            );
            Err(BackendError::new(Fault::OtherVersion, text))
        }
        _ => Ok(()),
    }
}

/// A value of no version.
pub(super) fn corrupt(what: &str, bytes: usize) -> BackendError {
    let text = format!(
        "{bytes} bytes in Redis are not a valid {what}: reset the caller to delete them, \
         and let no other program use this prefix"
    );
    BackendError::new(Fault::Corrupt, text)
}
