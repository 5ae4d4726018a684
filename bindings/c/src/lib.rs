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

mod arguments;
mod boundary;
mod check;
mod clock;
mod config;
mod decision;
mod error;
mod handle;
mod limiter;
mod overrides;
mod reservation;

pub use self::check::*;
pub use self::clock::*;
pub use self::config::*;
pub use self::decision::*;
pub use self::error::*;
pub use self::limiter::*;
pub use self::overrides::*;
pub use self::reservation::*;
