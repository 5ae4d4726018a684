use super::{AnyAlgorithm, Word};
use crate::Timestamp;

/// What an allowed call has spent, and what it takes to settle the call later.
///
/// A refund excludes what has been refilled since. Otherwise a caller could keep calls open
/// while its allowance refills, and settle all of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendRecord {
    /// The algorithm that decided.
    pub algorithm: AnyAlgorithm,
    /// The caller's word after the call.
    pub word: Word,
    /// The time of the decision.
    pub at: Timestamp,
    /// The cost of the call.
    pub cost: u64,
}
