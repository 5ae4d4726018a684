//! Adaptive limits.
//!
//! A [`Controller`] moves a limit between a minimum and a maximum, by what it sees of the service
//! behind it: a pure step from one [`Window`] to the next, without a clock and without I/O.
//! [`AdaptiveLimit`] applies it to how much is in progress, [`AdaptiveRate`] to a quota.
//!
//! | what | moved by | a step every |
//! |---|---|---|
//! | calls in flight: [`AdaptiveLimit::concurrency`] | [`Auto`], [`Target`], [`Aimd`]; [`Load`] with a [`Signal`] | second, if ten calls ended; 500 ms |
//! | a share of all calls: [`AdaptiveLimit::share`] | [`Errors`] | second, if ten calls ended |
//! | calls per second: [`AdaptiveRate`] | [`Load`] with a [`Signal`], [`Auto`], [`Target`] | 500 ms; second, if ten calls ended |
//!
//! Steps are taken by calls, of which none waits: there is no background task. A window that is not
//! complete within a minute counts if calls were refused in it and at least one ended, so that no
//! limit is too low to learn from. Otherwise it is thrown away, and nothing of before an idle time
//! counts after it.

mod controller;
mod diffusion;
mod histogram;
mod in_flight;
mod limit;
mod limit_state;
mod priority;
mod ranking;
mod rate;
mod recorder;
mod regulated;
mod regulator;
mod signal;
mod status;
mod window;

pub use self::controller::{Aimd, Auto, Controller, Errors, Load, Step, StepReason, Target};
pub use self::limit::{AdaptiveLimit, AdaptiveLimitBuilder, AdaptivePermit, Ending, Shed};
pub use self::priority::{Priority, PriorityClass};
pub use self::rate::{AdaptiveRate, AdaptiveRateBuilder};
#[cfg(feature = "tokio")]
pub use self::signal::EventLoopDelay;
pub use self::signal::{Cpu, Signal};
pub use self::status::AdaptiveStatus;
pub use self::window::{LimitKind, Window};
