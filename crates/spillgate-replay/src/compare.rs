//! Who is treated differently by two policies.

use std::hash::BuildHasher;

use spillgate::{HeavyHitters, KeyedState};
use spillgate_policy::Caller;

/// How many callers are kept.
const KEPT: usize = 8192;

/// Requests about which two policies do not agree.
#[derive(Debug)]
pub(crate) struct Differences {
    /// Allowed by both; refused by the second alone; by the first alone; by both.
    pub(crate) counts: [u64; 4],
    pub(crate) callers: HeavyHitters<Difference>,
    hasher: KeyedState,
}

/// A caller that is treated differently.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) name: String,
    pub(crate) newly_refused: u64,
    pub(crate) newly_allowed: u64,
}

impl Differences {
    pub(crate) fn new() -> Self {
        Self { counts: [0; 4], callers: HeavyHitters::new(KEPT), hasher: KeyedState::new() }
    }

    pub(crate) fn count(&mut self, caller: &Caller<'_>, first: bool, second: bool) {
        self.counts[usize::from(!first) * 2 + usize::from(!second)] += 1;
        if first == second {
            return;
        }
        let different = self.callers.add(self.hasher.hash_one(caller), || Difference {
            name: caller.to_string(),
            newly_refused: 0,
            newly_allowed: 0,
        });
        match second {
            true => different.newly_allowed += 1,
            false => different.newly_refused += 1,
        }
    }
}
