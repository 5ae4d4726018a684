use std::ops::RangeInclusive;
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::algorithm::Word;
use spillgate::{AlgorithmKind, Quota};

use crate::backend::{BackendError, Fault};
use crate::{Base, State, Terms};

/// The version of what is written here. Whoever changes what the bytes mean raises it, and
/// goes on reading the one before, since nodes of both run side by side during an upgrade.
///
/// Version 1 has no tiers that share a state, and no bases. What has neither is still written
/// so.
pub(super) const VERSION: u8 = 2;

/// The version of what has not changed since the first.
pub(super) const FIRST_VERSION: u8 = 1;

/// What a later version may begin with. Texts of others begin with none of these.
pub(super) const LATER: RangeInclusive<u8> = VERSION + 1..=31;

/// Set in the byte of the kind if the terms are an override.
const OVERRIDE: u8 = 0x80;

/// Set there if the limit has tiers.
const TIERED: u8 = 0x40;

/// How many bytes a quota is: amount, period in nanoseconds (zero if nothing is ever refilled)
/// and burst (8 each).
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

/// The quota, if it could ever have been written.
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
    /// How many bytes terms are: version (1), kind (1), amount (8), period in nanoseconds
    /// (8, zero if nothing is ever refilled) and burst (8).
    pub const BYTES: usize = 2 + QUOTA_BYTES;

    /// The terms, for Redis to keep and to compare, the version left aside.
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

    /// The first version that has such terms.
    fn version(&self) -> u8 {
        if self.is_tiered { VERSION } else { FIRST_VERSION }
    }

    /// The terms that Redis has kept, if they could ever have been written.
    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        Self::read(bytes).filter(|terms| terms.version() == bytes[0])
    }

    /// The same, whatever the version.
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
    /// How many bytes a state is without a base: its terms, and its word (8).
    pub const BYTES: usize = Terms::BYTES + 8;

    /// How many bytes it is with one, which follows: terms, word (8), and when nothing of it is
    /// spent any more (8).
    pub const BYTES_WITH_BASE: usize = 2 * Self::BYTES + 8;

    /// The state, for Redis to keep.
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

    /// The state that Redis has kept.
    ///
    /// # Errors
    ///
    /// If it is of another version, or no state that could ever have been written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BackendError> {
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

/// What else can be done about it.
pub(super) const FORGET: &str = "; to forget what is kept, reset the caller";

/// Something that a later version has written.
pub(super) fn newer(what: &str, version: u8, remedy: &str) -> BackendError {
    let text = format!(
        "Redis keeps a {what} of version {version}, which this program cannot read yet; \
         upgrade it, or give it a prefix of its own{remedy}"
    );
    BackendError::new(Fault::NewerState, text)
}

/// Something that no version has written.
pub(super) fn corrupt(what: &str, bytes: usize) -> BackendError {
    let text = format!(
        "Redis keeps {bytes} bytes that are no {what}: reset the caller, which deletes them, \
         and let no other program use this prefix"
    );
    BackendError::new(Fault::Corrupt, text)
}
