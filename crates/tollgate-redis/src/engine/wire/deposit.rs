use super::state::{LATER, VERSION, newer};
use crate::engine::{EngineError, Fault};
use crate::{Name, Terms};

/// Something that a caller spent in advance, for any node to settle.
///
/// Whoever reads it learns the limit, but not the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deposit {
    /// What the policy counted the caller by.
    pub(crate) terms: Terms,
    /// What the limit is, whatever its quota: one that counts something else has another.
    pub(crate) limit: Name,
    pub(crate) caller: Name,
    pub(crate) reserved: u64,
    /// What the limit is called.
    pub(crate) called: String,
}

impl Deposit {
    /// A version (1, which is 1), the terms (26), the names of the limit and of the caller (16
    /// each), what was reserved (8), and what the limit is called (the rest, at most 64).
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [
            &[VERSION],
            &self.terms.to_bytes()[..],
            self.limit.as_bytes(),
            self.caller.as_bytes(),
            &self.reserved.to_be_bytes(),
            self.called.as_bytes(),
        ]
        .concat()
    }

    /// What an engine has kept.
    ///
    /// # Errors
    ///
    /// If it is of another version, or could never have been written.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, EngineError> {
        match bytes {
            [VERSION, rest @ ..] => Self::read(rest).ok_or_else(|| {
                let text = format!("the engine keeps {} bytes that are no deposit", bytes.len());
                EngineError::new(Fault::Nonsense, text)
            }),
            [version, ..] if LATER.contains(version) => Err(newer("deposit", *version)),
            _ => Err(EngineError::new(Fault::Nonsense, "the engine keeps what is no deposit")),
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (terms, bytes) = bytes.split_first_chunk()?;
        let (limit, bytes) = bytes.split_first_chunk()?;
        let (caller, bytes) = bytes.split_first_chunk()?;
        let (reserved, called) = bytes.split_first_chunk()?;
        Some(Self {
            terms: Terms::from_bytes(terms)?,
            limit: Name::from_bytes(*limit),
            caller: Name::from_bytes(*caller),
            reserved: u64::from_be_bytes(*reserved),
            called: String::from_utf8(called.to_vec()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use tollgate::AlgorithmKind;

    use super::*;

    fn deposit() -> Deposit {
        let quota = "10/h burst 20".parse().unwrap();
        let kind = AlgorithmKind::TokenBucket;
        Deposit {
            terms: Terms { kind, quota, is_override: false },
            limit: Name::from_bytes([1; 16]),
            caller: Name::from_bytes([2; 16]),
            reserved: 7,
            called: "api".to_owned(),
        }
    }

    #[test]
    fn what_is_deposited_is_read_again() {
        let bytes = deposit().to_bytes();
        assert_eq!(bytes.len(), 67 + "api".len());
        assert_eq!(Deposit::from_bytes(&bytes), Ok(deposit()));
    }

    #[test]
    fn what_cannot_be_a_deposit_is_told() {
        let bytes = deposit().to_bytes();
        let fault = |bytes: &[u8]| Deposit::from_bytes(bytes).unwrap_err().fault();
        for end in 0..67 {
            assert_eq!(fault(&bytes[..end]), Fault::Nonsense, "{end} bytes");
        }
        assert_eq!(fault(&[&bytes[..], b"\xff"].concat()), Fault::Nonsense);
        assert_eq!(fault(b"hello"), Fault::Nonsense);
        assert_eq!(fault(&[&[2], &bytes[1..]].concat()), Fault::NewerState);
    }
}
