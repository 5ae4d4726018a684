#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

pub mod account;
pub mod adaptive;
pub mod algorithm;
mod clock;
mod concurrency;
mod decision;
mod error;
pub mod fork;
mod hasher;
mod heavy_hitters;
mod limiter;
mod quota;
mod seq_cell;
mod sync;
mod table;
mod timestamp;

pub use self::algorithm::{AlgorithmKind, Start};
pub use self::clock::{Clock, ManualClock, SystemClock};
pub use self::concurrency::{Busy, BusyCause, Concurrency, ConcurrencyBuilder, Permit};
pub use self::decision::{Decision, Verdict};
pub use self::error::Error;
pub use self::hasher::{KeyedHasher, KeyedState, Seed};
pub use self::heavy_hitters::{HashIsKey, HeavyHitter, HeavyHitters, SameHash};
pub use self::limiter::{
    AllDecision, CheckMany, Counts, Limiter, LimiterBuilder, Reservation, Saved, SavedCaller,
    SavedOwn, SavedTable, Settled, Spend, TierOf, check_all, check_all_at,
};
pub use self::quota::{Quota, QuotaBuilder};
pub use self::table::{Fingerprint, Table, WhenFull};
pub use self::timestamp::Timestamp;
