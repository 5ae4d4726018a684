//! The interface of the limiter for C: `include/spillgate.h` is made from this crate.
//!
//! Rules of every function:
//!
//! - No panic leaves it: it becomes `SG_ERROR_INTERNAL`.
//! - A pointer that must not be NULL is checked; so is whether a handle is alive.
//! - An error sets the thread's last error text. A denial is not an error.

#![expect(unsafe_code, reason = "an interface for C takes pointers")]
#![expect(non_camel_case_types, reason = "names as in the header")]
#![expect(clippy::missing_safety_doc, reason = "the header says what pointers must be")]

// In the order of the header.
mod error;

mod config;
mod decision;
mod limiter;

mod check;
mod overrides;
mod reservation;

mod clock;

mod arguments;
mod boundary;
mod handle;

pub use self::arguments::{SG_CSTR, SG_MAX_KEY};
pub use self::check::*;
pub use self::clock::*;
pub use self::config::*;
pub use self::decision::*;
pub use self::error::*;
pub use self::limiter::*;
pub use self::overrides::*;
pub use self::reservation::*;
