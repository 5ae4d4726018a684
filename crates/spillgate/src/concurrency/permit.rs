use std::fmt;
use std::sync::Arc;

use super::busy::saturated;
use super::shard::Shard;
use crate::Fingerprint;

/// Something in progress. Dropped, it makes room for the next.
///
/// ```
/// use spillgate::Concurrency;
///
/// let uploads: Concurrency<str> = Concurrency::new(10);
/// let permit = uploads.try_acquire_n("alice", 3)?;
/// assert_eq!((permit.count(), permit.in_flight()), (3, 3));
/// permit.release();
/// assert_eq!(uploads.in_flight("alice"), 0);
/// # Ok::<(), spillgate::Busy>(())
/// ```
#[must_use = "dropped, it is released"]
pub struct Permit {
    /// Where it is counted, if it is.
    shard: Option<Arc<Shard>>,
    key: Fingerprint,
    count: u32,
    in_flight: u32,
}

impl Permit {
    pub(super) fn counted(shard: &Arc<Shard>, key: Fingerprint, count: u32, held: u64) -> Self {
        Self { shard: Some(Arc::clone(shard)), key, count, in_flight: saturated(held) }
    }

    pub(super) fn uncounted(key: Fingerprint, count: u32, in_flight: u32) -> Self {
        Self { shard: None, key, count, in_flight }
    }

    /// How many permits it stands for.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How many of the key were held when it was granted, itself included.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// False if its count is 0, or it was [acquired beyond](super::Concurrency::acquire_beyond)
    /// the limit and there was no room for its key.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.shard.is_some()
    }

    /// Releases it, as dropping it does.
    pub fn release(self) {}

    /// Takes what it holds: the holder releases it.
    #[cfg(feature = "tokio")]
    pub(super) fn into_count(mut self) -> u32 {
        if self.shard.take().is_some() { self.count } else { 0 }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(shard) = &self.shard {
            shard.release(self.key, self.count);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("count", &self.count)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}
