use spillgate::algorithm::{SpendRecord, Word};
use spillgate::{Quota, Timestamp};

use super::state::{
    QUOTA_BYTES, VERSION, expect_version, moment, number, quota_from_bytes, quota_to_bytes,
};
use crate::backend::{BackendError, Fault, Result};
use crate::{Name, Terms};

/// A reservation that any node can settle.
///
/// A reader learns the limit, but not the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deposit {
    /// The terms by the policy.
    pub(crate) terms: Terms,
    /// Identifies the limit whatever its quota.
    pub(crate) limit: Name,
    pub(crate) caller: Name,
    pub(crate) reserved: u64,
    /// `None` if unknown: then it is also unknown what has been refilled since.
    pub(crate) paid: Option<Paid>,
    /// The name of the limit.
    pub(crate) called: String,
}

/// What was paid, to compute what has been refilled of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paid {
    /// The quota it was counted by: of the policy, of the call, or an override.
    pub(crate) quota: Quota,
    /// The word after it.
    pub(crate) word: Word,
    /// When.
    pub(crate) at: Timestamp,
}

impl Paid {
    fn to_bytes(self) -> Vec<u8> {
        [
            &quota_to_bytes(&self.quota)[..],
            &self.word.to_bits().to_be_bytes(),
            &self.at.as_nanos().to_be_bytes(),
        ]
        .concat()
    }

    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (quota, bytes) = bytes.split_first_chunk::<QUOTA_BYTES>()?;
        let (word, bytes) = number(bytes)?;
        let (at, bytes) = moment(bytes)?;
        let (quota, word) = (quota_from_bytes(quota)?, Word::from_bits(word));
        Some((Self { quota, word, at }, bytes))
    }
}

impl Deposit {
    /// Terms (26, the first of which is the version), names of limit and caller (16 each),
    /// reserved cost (8), 1 if what was paid follows or 0 (1), that (a quota of 24, word and time
    /// of 8 each), and the name of the limit (the rest, at most 64).
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [
            &self.terms.to_bytes()[..],
            self.limit.as_bytes(),
            self.caller.as_bytes(),
            &self.reserved.to_be_bytes(),
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
        expect_version("deposit", bytes, VERSION)?;
        Self::read(bytes).ok_or_else(|| {
            let text = format!("{} bytes in Redis are not a valid reservation", bytes.len());
            BackendError::new(Fault::Nonsense, text)
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (terms, bytes) = bytes.split_first_chunk()?;
        let (limit, bytes) = bytes.split_first_chunk()?;
        let (caller, bytes) = bytes.split_first_chunk()?;
        let (reserved, bytes) = number(bytes)?;
        let (paid, called) = match bytes.split_first()? {
            (0, called) => (None, called),
            (1, bytes) => Paid::read(bytes).map(|(paid, called)| (Some(paid), called))?,
            _ => return None,
        };
        Some(Self {
            terms: Terms::from_bytes(terms)?,
            limit: Name::from_bytes(*limit),
            caller: Name::from_bytes(*caller),
            reserved,
            paid,
            called: String::from_utf8(called.to_vec()).ok()?,
        })
    }

    /// The spend, if it is known.
    pub(crate) fn spent(&self) -> Option<SpendRecord> {
        let Paid { quota, word, at } = self.paid?;
        let algorithm = Terms::new(self.terms.kind, quota).algorithm().ok()?;
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
            limit: Name::from_bytes([1; 16]),
            caller: Name::from_bytes([2; 16]),
            reserved: 7,
            paid: Some(Paid { quota: "5/s".parse().unwrap(), word, at }),
            called: "api".to_owned(),
        }
    }

    fn unpaid() -> Deposit {
        Deposit { paid: None, ..deposit() }
    }

    #[test]
    fn what_is_deposited_is_read_again() {
        let bytes = deposit().to_bytes();
        assert_eq!(bytes.len(), 107 + "api".len());
        assert_eq!(Deposit::from_bytes(&bytes), Ok(deposit()));
        assert_eq!(Deposit::from_bytes(&unpaid().to_bytes()), Ok(unpaid()));
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
        for end in 0..107 {
            assert_eq!(fault(&bytes[..end]), Fault::Nonsense, "{end} bytes");
        }
        assert_eq!(fault(&[&bytes[..], b"\xff"].concat()), Fault::Nonsense);
        assert_eq!(fault(b"hello"), Fault::Nonsense);
        for version in [1, 2, 4] {
            assert_eq!(fault(&[&[version], &bytes[1..]].concat()), Fault::OtherVersion);
        }
    }
}
