//! A service under load, event by event, without a clock: the same seed gives the same run.

mod guard;
mod random;
mod report;
mod run;
mod service;

pub(crate) use self::guard::{Guard, Limited, Unlimited};
pub(crate) use self::random::Random;
pub(crate) use self::report::{Figures, Report};
pub(crate) use self::run::{ByTime, Scenario};
pub(crate) use self::service::{Service, Work};
