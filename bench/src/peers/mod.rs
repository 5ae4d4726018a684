//! One file a peer.

mod dashmap_bucket;
mod floor;
mod governor;
mod in_dashmap;
mod leaky_bucket;
mod quota;
mod ratelimit;
mod spillgate;
mod throttlecrab;

pub use self::dashmap_bucket::DashMapBucket;
pub use self::floor::Floor;
pub use self::governor::{Governor, GovernorOwned};
pub use self::leaky_bucket::LeakyBucket;
pub use self::quota::Quota;
pub use self::ratelimit::Ratelimit;
pub use self::spillgate::{Spillgate, SpillgateIp, SpillgateMany, SpillgateSipHash};
pub use self::throttlecrab::Throttlecrab;
