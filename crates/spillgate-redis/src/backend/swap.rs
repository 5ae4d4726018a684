use std::time::Duration;

use spillgate::Timestamp;

/// A compare and set of a small value. Empty means absent.
///
/// ```
/// use std::time::Duration;
/// use spillgate_redis::Name;
/// use spillgate_redis::backend::{Backend, Model, Swap};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (redis, name) = (Model::default(), Name::from_bytes([1; 16]));
/// let swap = Swap { old: Vec::new(), new: b"1".to_vec(), ttl: Duration::from_secs(60) };
/// assert!(redis.swap_strikes(name, Some(&swap)).await?.is_swapped);
/// assert!(!redis.swap_strikes(name, Some(&swap)).await?.is_swapped, "it is there already");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The expected value.
    pub old: Vec<u8>,
    /// The new value.
    pub new: Vec<u8>,
    /// Its time to live.
    pub ttl: Duration,
}

/// What a [swap](Swap) found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swapped {
    /// The time, by the clock of Redis.
    pub now: Timestamp,
    /// True if the value was replaced.
    pub is_swapped: bool,
    /// The value that is there now.
    pub value: Vec<u8>,
}
