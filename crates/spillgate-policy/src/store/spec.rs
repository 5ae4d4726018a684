//! Limits as a store needs to know them.

use std::time::Duration;

use spillgate::{AlgorithmKind, Quota, Start, WhenFull};

use super::OverrideSpec;

/// A limit, as a store needs to know it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LimitSpec {
    /// The name, by which it is known from one policy to the next.
    pub name: String,
    /// What it counts apart. If this changes, keys mean something else.
    pub per: String,
    /// How the quota is spent.
    pub algorithm: AlgorithmKind,
    /// What a caller never seen has.
    pub start: Start,
    /// The quota of callers without a tier or an override.
    pub quota: Quota,
    /// True if that decides nothing, since a quota [comes with each call](super::Spend::quota). Words
    /// are times then, which must stay what they are.
    pub is_by_call: bool,
    /// The tiers, by name. [`Key::tier`](crate::Key::tier) is a place among them. A caller has one allowance,
    /// whatever its tier.
    pub tiers: Vec<(String, Quota)>,
    /// The quotas of single callers.
    pub overrides: Vec<OverrideSpec>,
    /// The maximum number of active callers, those below their full quota.
    pub capacity: usize,
    /// What becomes of a new caller when there is no room.
    pub when_full: WhenFull,
    /// How much a caller may owe beyond its burst, if that is not the default:
    /// [`AnyAlgorithm::most_owed`](spillgate::algorithm::AnyAlgorithm::most_owed).
    pub max_debt: Option<u64>,
    /// How nodes share it, if the store is one that they share.
    pub sharing: Sharing,
    /// What happens while the store cannot be reached.
    pub outage: Outage,
    /// If the limit is on concurrency: permits are held for as long as something is in progress.
    /// Quotas are then of the kind [`Quota::once`], and their burst is how many permits there are.
    pub hold: Option<HoldSpec>,
}

/// How permits of a limit on concurrency are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldSpec {
    /// After how long without a sign of life the permits of another node, or of a program that
    /// acquired them, expire.
    pub ttl: Duration,
}

impl HoldSpec {
    /// Permits that expire after this time.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self { ttl }
    }
}

/// How the nodes of a cluster share a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sharing {
    /// Every decision is made where all nodes meet.
    #[default]
    Strict,
    /// Nodes take slices of a bucket ahead of use, and decide by themselves while these last.
    Leased,
}

/// What happens under a limit while a store elsewhere cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outage {
    /// Each node goes by its own share of the limit.
    #[default]
    Local,
    /// Everyone passes.
    Open,
    /// Nobody passes.
    Closed,
}

impl LimitSpec {
    /// A token bucket per caller, as a policy without further keys has it: for tests of a store.
    ///
    /// ```
    /// use spillgate_policy::store::{LimitSpec, Memory, Store};
    ///
    /// let limits = [LimitSpec::new("api", "10/s burst 20".parse()?)];
    /// let opened = Memory::<spillgate::SystemClock>::default().open(&limits)?;
    /// # drop(opened);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(name: &str, quota: Quota) -> Self {
        Self {
            name: name.to_owned(),
            per: "caller".to_owned(),
            algorithm: AlgorithmKind::TokenBucket,
            start: Start::Full,
            quota,
            is_by_call: false,
            tiers: Vec::new(),
            overrides: Vec::new(),
            capacity: 100_000,
            when_full: WhenFull::default(),
            max_debt: None,
            sharing: Sharing::default(),
            outage: Outage::default(),
            hold: None,
        }
    }

    /// The same as a limit on concurrency, whose permits are held like this.
    #[must_use]
    pub fn holding(self, hold: HoldSpec) -> Self {
        Self { hold: Some(hold), ..self }
    }
}
