use std::fmt;

/// Why there is no permit now.
///
/// ```
/// use spillgate::{BusyCause, Concurrency};
///
/// let uploads: Concurrency<str> = Concurrency::new(1);
/// let _permit = uploads.try_acquire("alice")?;
/// let busy = uploads.try_acquire("alice").unwrap_err();
/// assert_eq!((busy.in_flight, busy.cause), (1, BusyCause::Held));
/// assert_eq!(busy.to_string(), "too many permits are in flight for this key: 1");
/// # Ok::<(), spillgate::Busy>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// How many permits of the key are held.
    pub in_flight: u32,
    /// True if there is no room for another key: shorthand for [`BusyCause::NoRoom`].
    pub is_full: bool,
    /// What was in the way.
    pub cause: BusyCause,
}

/// What was in the way of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusyCause {
    /// Fewer permits are free than the call needs.
    Held,
    /// Other calls wait for the key, and were first.
    Queued,
    /// As many calls wait for the key as its queue holds.
    QueueFull,
    /// The call has waited for as long as it could.
    TimedOut,
    /// The call needs more permits than the limit: it will never get them.
    AboveLimit,
    /// There is no room for another key.
    NoRoom,
}

impl Busy {
    pub(super) fn new(cause: BusyCause, held: u64) -> Self {
        Self { in_flight: saturated(held), is_full: cause == BusyCause::NoRoom, cause }
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.cause {
            BusyCause::Held => "too many permits are in flight for this key",
            BusyCause::Queued => "other calls wait for this key; permits in flight",
            BusyCause::QueueFull => "the queue of this key is full; permits in flight",
            BusyCause::TimedOut => "timed out waiting for this key; permits in flight",
            BusyCause::AboveLimit => {
                "the call needs more permits than the limit, so it never gets them; in flight"
            }
            BusyCause::NoRoom => {
                return f.write_str(
                    "as many keys are in flight as the capacity allows; raise the capacity",
                );
            }
        };
        write!(f, "{what}: {}", self.in_flight)
    }
}

impl std::error::Error for Busy {}

/// For display: more than 4 billion in flight are not told apart.
pub(super) fn saturated(held: u64) -> u32 {
    u32::try_from(held).unwrap_or(u32::MAX)
}
