use spillgate::algorithm::{SpendRecord, Word};
use spillgate::{Quota, Timestamp};

use super::state::{
    FIRST_VERSION, LATER, QUOTA_BYTES, VERSION, newer, quota_from_bytes, quota_to_bytes,
};
use crate::backend::{BackendError, Fault, Result};
use crate::effective_quota::EffectiveQuota;
use crate::{Name, Terms};

/// A reservation that any node can settle.
///
/// A reader learns the limit, but not the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deposit {
    /// The terms by the policy.
    pub(crate) terms: Terms,
    /// The quota of the terms, or of a tier.
    pub(crate) quota: Quota,
    /// Identifies the limit whatever its quota.
    pub(crate) limit: Name,
    pub(crate) caller: Name,
    pub(crate) reserved: u64,
    /// `None` if unknown, as in version 1: then it is also unknown what has been refilled since.
    pub(crate) paid: Option<Paid>,
    /// The name of the limit.
    pub(crate) called: String,
}

/// What was paid, to compute what has been refilled of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paid {
    /// The quota it was counted by: of the policy, or an override.
    pub(crate) quota: Quota,
    /// The quota that says how the word is packed.
    pub(crate) packed_by: Quota,
    /// The word after it.
    pub(crate) word: Word,
    /// When.
    pub(crate) at: Timestamp,
}

impl Paid {
    /// What a spend has paid.
    pub(crate) fn new(effective: &EffectiveQuota, spent: &SpendRecord) -> Self {
        let (quota, packed_by) = (effective.quota, effective.terms.quota);
        Self { quota, packed_by, word: spent.word, at: spent.at }
    }

    fn to_bytes(self) -> Vec<u8> {
        [
            &quota_to_bytes(&self.quota)[..],
            &quota_to_bytes(&self.packed_by),
            &self.word.to_bits().to_be_bytes(),
            &self.at.as_nanos().to_be_bytes(),
        ]
        .concat()
    }

    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (quota, bytes) = read_quota(bytes)?;
        let (packed_by, bytes) = read_quota(bytes)?;
        let (word, bytes) = bytes.split_first_chunk()?;
        let (at, bytes) = bytes.split_first_chunk()?;
        let (word, at) = (Word::from_bits(u64::from_be_bytes(*word)), u64::from_be_bytes(*at));
        let at = (at <= Timestamp::MAX.as_nanos()).then(|| Timestamp::from_nanos(at))?;
        Some((Self { quota, packed_by, word, at }, bytes))
    }
}

fn read_quota(bytes: &[u8]) -> Option<(Quota, &[u8])> {
    let (quota, bytes) = bytes.split_first_chunk::<QUOTA_BYTES>()?;
    Some((quota_from_bytes(quota)?, bytes))
}

impl Deposit {
    /// Version (1 byte, value 2), terms (26), names of limit and caller (16 each), reserved cost
    /// (8), quota (24), 1 if what was paid follows or 0 (1), that (two quotas of 24, word and
    /// time of 8 each), and the name of the limit (the rest, at most 64). Version 1 has neither
    /// quota nor what was paid.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [
            &[VERSION],
            &self.terms.to_bytes()[..],
            self.limit.as_bytes(),
            self.caller.as_bytes(),
            &self.reserved.to_be_bytes(),
            &quota_to_bytes(&self.quota),
            &[u8::from(self.paid.is_some())],
            &self.paid.map_or_else(Vec::new, Paid::to_bytes),
            self.called.as_bytes(),
        ]
        .concat()
    }

    /// Reads a stored reservation.
    ///
    /// # Errors
    ///
    /// If it is of another version, or invalid.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes {
            [version @ (FIRST_VERSION | VERSION), rest @ ..] => Self::read(*version, rest)
                .ok_or_else(|| {
                    let text =
                        format!("{} bytes in Redis are not a valid reservation", bytes.len());
                    BackendError::new(Fault::Nonsense, text)
                }),
            [version, ..] if LATER.contains(version) => Err(newer("deposit", *version, "")),
            _ => Err(BackendError::new(Fault::Nonsense, "a value in Redis is not a reservation")),
        }
    }

    fn read(version: u8, bytes: &[u8]) -> Option<Self> {
        let (terms, bytes) = bytes.split_first_chunk()?;
        let (limit, bytes) = bytes.split_first_chunk()?;
        let (caller, bytes) = bytes.split_first_chunk()?;
        let (reserved, bytes) = bytes.split_first_chunk()?;
        let terms = Terms::from_bytes(terms)?;
        let (quota, paid, called) = match version {
            FIRST_VERSION => (terms.quota, None, bytes),
            _ => Self::read_paid(bytes)?,
        };
        Some(Self {
            terms,
            quota,
            limit: Name::from_bytes(*limit),
            caller: Name::from_bytes(*caller),
            reserved: u64::from_be_bytes(*reserved),
            paid,
            called: String::from_utf8(called.to_vec()).ok()?,
        })
    }

    fn read_paid(bytes: &[u8]) -> Option<(Quota, Option<Paid>, &[u8])> {
        let (quota, bytes) = read_quota(bytes)?;
        match bytes.split_first()? {
            (0, called) => Some((quota, None, called)),
            (1, bytes) => Paid::read(bytes).map(|(paid, called)| (quota, Some(paid), called)),
            _ => None,
        }
    }

    /// The spend, if it is known.
    pub(crate) fn spent(&self) -> Option<SpendRecord> {
        let Paid { quota, packed_by, word, at } = self.paid?;
        let algorithm = Terms::new(self.terms.kind, packed_by).algorithm_of(&quota).ok()?;
        Some(SpendRecord { algorithm, word, at, cost: self.reserved })
    }
}

#[cfg(test)]
mod tests {
    use spillgate::AlgorithmKind;

    use super::*;

    fn deposit() -> Deposit {
        let quota = "10/h burst 20".parse().unwrap();
        let at = Timestamp::from_secs(1_700_000_000);
        let word = Word::from_bits(1_700_000_360_000_000_000);
        Deposit {
            terms: Terms::new(AlgorithmKind::TokenBucket, quota),
            quota: "20/h".parse().unwrap(),
            limit: Name::from_bytes([1; 16]),
            caller: Name::from_bytes([2; 16]),
            reserved: 7,
            paid: Some(Paid { quota: "5/s".parse().unwrap(), packed_by: quota, word, at }),
            called: "api".to_owned(),
        }
    }

    fn unpaid() -> Deposit {
        Deposit { paid: None, ..deposit() }
    }

    #[test]
    fn what_is_deposited_is_read_again() {
        let bytes = deposit().to_bytes();
        assert_eq!(bytes.len(), 156 + "api".len());
        assert_eq!(Deposit::from_bytes(&bytes), Ok(deposit()));
        assert_eq!(Deposit::from_bytes(&unpaid().to_bytes()), Ok(unpaid()));
    }

    #[test]
    fn a_deposit_of_the_first_version_is_read_without_what_was_paid() {
        let Deposit { terms, .. } = deposit();
        let bytes = [&[1], &terms.to_bytes()[..], &[1; 16], &[2; 16], &7_u64.to_be_bytes(), b"api"];
        let read = Deposit::from_bytes(&bytes.concat());
        assert_eq!(read, Ok(Deposit { quota: terms.quota, ..unpaid() }));
        assert_eq!(read.unwrap().spent(), None);
    }

    #[test]
    fn what_was_paid_is_counted_by_its_own_quota() {
        let spent = deposit().spent().unwrap();
        let algorithm = Terms::new(AlgorithmKind::TokenBucket, "5/s".parse().unwrap()).algorithm();
        assert_eq!((spent.algorithm, spent.cost), (algorithm.unwrap(), 7));
    }

    #[test]
    fn what_cannot_be_a_deposit_is_an_error() {
        let bytes = deposit().to_bytes();
        let fault = |bytes: &[u8]| Deposit::from_bytes(bytes).unwrap_err().fault();
        for end in 0..156 {
            assert_eq!(fault(&bytes[..end]), Fault::Nonsense, "{end} bytes");
        }
        assert_eq!(fault(&[&bytes[..], b"\xff"].concat()), Fault::Nonsense);
        assert_eq!(fault(b"hello"), Fault::Nonsense);
        assert_eq!(fault(&[&[3], &bytes[1..]].concat()), Fault::NewerState);
    }
}
