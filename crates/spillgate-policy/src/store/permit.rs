//! Permits that are held for a while and then released.

use std::fmt;
use std::str::FromStr;

use smallvec::SmallVec;
use spillgate::Permit;

/// What a request holds until it ends: permits of every limit on concurrency that it met. Dropped,
/// they are released.
pub type Permits = SmallVec<[Permit; 1]>;

/// Names permits that are held by a program elsewhere, until they are released or expire. Nobody
/// can guess one: half of it is random, the other half is the store's.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PermitId(pub [u8; 32]);

impl fmt::Display for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Shortened: who knows an id can release it.
impl fmt::Debug for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PermitId({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

impl FromStr for PermitId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| ())?;
        let mut id = [0; 32];
        for (byte, digits) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| (digit as char).to_digit(16).map(|digit| digit as u8);
            *byte = digit(digits[0]).ok_or(())? << 4 | digit(digits[1]).ok_or(())?;
        }
        Ok(Self(id))
    }
}
