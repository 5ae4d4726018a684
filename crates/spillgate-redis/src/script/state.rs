use std::ops::RangeInclusive;
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::algorithm::Word;
use spillgate::{AlgorithmKind, Quota};

use crate::backend::{BackendError, Fault, Result};
use crate::{Base, State, Terms};

/// The version of this format. Raise it when the bytes change their meaning, and keep reading the
/// previous one: nodes of both run side by side during an upgrade.
///
/// Version 1 has neither tiers that share a state nor bases. States without them are still written
/// so.
pub(super) const VERSION: u8 = 2;

/// The version of what has not changed since the first.
pub(super) const FIRST_VERSION: u8 = 1;

/// First bytes of later versions. Texts of other programs begin with none of these.
pub(super) const LATER: RangeInclusive<u8> = VERSION + 1..=31;

/// Flag in the byte of the kind: an override.
const OVERRIDE: u8 = 0x80;

/// Flag in the byte of the kind: tiers.
const TIERED: u8 = 0x40;

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

    /// The terms as stored. Redis compares them without the version.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        bytes[0] = self.version();
        bytes[1] =
            self.kind as u8 | flag(self.is_override, OVERRIDE) | flag(self.is_tiered, TIERED);
        bytes[2..].copy_from_slice(&quota_to_bytes(&self.quota));
        bytes
    }

    /// The first version with such terms.
    fn version(&self) -> u8 {
        if self.is_tiered { VERSION } else { FIRST_VERSION }
    }

    /// The stored terms, if valid.
    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        Self::read(bytes).filter(|terms| terms.version() == bytes[0])
    }

    /// The same for any version.
    fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let [_, kind, quota @ ..] = bytes;
        let terms = Self {
            kind: *AlgorithmKind::ALL.get(usize::from(kind & !(OVERRIDE | TIERED)))?,
            quota: quota_from_bytes(quota)?,
            is_override: kind & OVERRIDE != 0,
            is_tiered: kind & TIERED != 0,
        };
        let can_be = !(terms.is_override && terms.is_tiered) && terms.algorithm().is_ok();
        can_be.then_some(terms)
    }
}

impl State {
    /// Bytes of a state without a base: terms and word (8).
    pub const BYTES: usize = Terms::BYTES + 8;

    /// Bytes with a base, which follows: terms, word (8), and when it is idle (8).
    pub const BYTES_WITH_BASE: usize = 2 * Self::BYTES + 8;

    /// The state as stored.
    #[must_use]
    pub fn to_bytes(&self) -> SmallVec<[u8; Self::BYTES_WITH_BASE]> {
        let mut bytes = SmallVec::new();
        bytes.extend(self.terms.to_bytes());
        bytes.extend(self.word.to_bits().to_be_bytes());
        if let Some(base) = &self.base {
            bytes[0] = VERSION;
            bytes.extend(base.terms.to_bytes());
            bytes.extend(base.word.to_bits().to_be_bytes());
            bytes.extend(base.idle_at.to_be_bytes());
        }
        bytes
    }

    /// Reads a stored state.
    ///
    /// # Errors
    ///
    /// If it is of another version, or invalid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes.first() {
            Some(version) if LATER.contains(version) => Err(newer("state", *version, FORGET)),
            _ => Self::read(bytes).ok_or_else(|| corrupt("state of a caller", bytes.len())),
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (terms, rest) = bytes.split_first_chunk()?;
        let (word, base) = rest.split_first_chunk()?;
        let base = if base.is_empty() { None } else { Some(Base::read(base)?) };
        let terms = match base {
            None => Terms::from_bytes(terms)?,
            Some(_) if terms[0] == VERSION => Terms::read(terms)?,
            Some(_) => return None,
        };
        Some(Self { terms, word: Word::from_bits(u64::from_be_bytes(*word)), base })
    }
}

impl Base {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (terms, bytes) = bytes.split_first_chunk()?;
        let (word, bytes) = bytes.split_first_chunk()?;
        Some(Self {
            terms: Terms::from_bytes(terms)?,
            word: Word::from_bits(u64::from_be_bytes(*word)),
            idle_at: u64::from_be_bytes(bytes.try_into().ok()?),
        })
    }
}

/// What to do about it.
pub(super) const FORGET: &str = "; to delete it, reset the caller";

/// A value of a later version.
pub(super) fn newer(what: &str, version: u8, remedy: &str) -> BackendError {
    let text = format!(
        "Redis stores a {what} of version {version}, which this version cannot read; upgrade this \
         node, or give it a prefix of its own{remedy}"
    );
    BackendError::new(Fault::NewerState, text)
}

/// A value of no version.
pub(super) fn corrupt(what: &str, bytes: usize) -> BackendError {
    let text = format!(
        "{bytes} bytes in Redis are not a valid {what}: reset the caller to delete them, \
         and let no other program use this prefix"
    );
    BackendError::new(Fault::Corrupt, text)
}
