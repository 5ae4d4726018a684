//! What goes over the wire: the keys, the arguments of the [scripts](super::scripts) and
//! their replies. All numbers are unsigned and big endian.

mod arguments;
mod deposit;
mod keys;
mod reply;
mod state;

pub use self::arguments::{Argument, announce, ask, exchange, millis, override_clock, prefixes};
pub(crate) use self::deposit::{Deposit, Paid};
pub use self::keys::{Key, Keys};
pub use self::reply::{alive, born, reply};
pub use super::server::answer;
