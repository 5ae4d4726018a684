//! What the bindings for other languages have in common.
//!
//! A [`Limiter`] over keys of bytes with the system's clock or a manual one, built from
//! [`Settings`] in which everything is optional; [`Reservation`]s that know their limiter; and an
//! [`Error`] with a code. All else is the library itself: decisions, counts, overrides, batches.
//!
//! ```
//! use spillgate_bindings::{ErrorCode, Settings};
//!
//! let limiter = Settings { quota: Some("10/s burst 20"), ..Settings::default() }.build()?;
//! assert_eq!(limiter.check(b"203.0.113.7").remaining(), 19);
//!
//! let wrong = Settings { when_full: Some("wait"), ..Settings::default() }.build();
//! assert_eq!(wrong.unwrap_err().code(), ErrorCode::Argument);
//! # Ok::<(), spillgate_bindings::Error>(())
//! ```

mod clock;
mod error;
pub mod fork;
mod reservation;
mod settings;
mod tiers;

pub use self::clock::AnyClock;
pub use self::error::{Error, ErrorCode};
pub use self::reservation::Reservation;
pub use self::settings::{DEFAULT_QUOTA, Settings};
pub use self::tiers::TierOf;

/// A limiter of callers with keys of bytes.
pub type Limiter = spillgate::Limiter<[u8], AnyClock>;

/// The key of callers without one: all of them share an allowance.
pub const ANONYMOUS: &[u8] = b"anonymous";

/// The key, or that of anonymous callers if it is empty.
#[inline(always)]
#[must_use]
pub const fn key_or_anonymous(key: &[u8]) -> &[u8] {
    if key.is_empty() { ANONYMOUS } else { key }
}
