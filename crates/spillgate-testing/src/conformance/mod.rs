//! The suite that every store and every surface must pass.

mod generated;
mod history;
mod recorded;

pub use self::generated::histories;
pub use self::history::{Call, History, Op};
pub use self::recorded::{recorded, recorded_tsv};
