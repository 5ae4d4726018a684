//! Callers that a limiter already knows.

use std::ops::Range;

use crate::keys::{Caller, KeySet};
use crate::peer::Contender;

/// Small enough that the keys cost no memory worth mentioning.
const BLOCK: u32 = 4096;

/// Checks each caller once, by everyone. Returns how many checks each admitted.
pub fn introduce(contenders: &[&dyn Contender], callers: Range<Caller>) -> Vec<u64> {
    let mut allowed = vec![0; contenders.len()];
    for start in callers.clone().step_by(BLOCK as usize) {
        let keys = KeySet::new(start..callers.end.min(start.saturating_add(BLOCK)));
        for (contender, allowed) in contenders.iter().zip(&mut allowed) {
            *allowed += contender.check_each(&keys);
        }
    }
    allowed
}
