use std::io::{self, Read, Write};

use spillgate::Clock;
use spillgate::algorithm::Algorithm;
use spillgate_policy::store::Saves;
use spillgate_policy::{Gate, SavedState};

use super::{Error, Moment, Piece, Reader, Writer};
use crate::protocol::resp::Throttle;

/// Writes what a gate and `CL.THROTTLE` hold, which must have one clock and one seed. Whoever
/// has nothing spent is left out.
///
/// Nothing waits for it but a change of the policy or of a list, and that only while one
/// limit is copied.
///
/// # Errors
///
/// If it cannot be written.
pub fn save<S: Saves>(
    gate: &Gate<S>,
    throttle: &Throttle<impl Clock>,
    out: impl Write,
) -> io::Result<u64> {
    let moment = Moment::now(throttle.clock());
    let mut writer = Writer::new(out, &moment, throttle.seed())?;
    for (kind, entry, added) in gate.save_lists() {
        writer.list(kind, &entry, added)?;
    }
    // Before the others and after them: one may go or come back while they are written.
    let removed = gate.save_removed();
    for limit in &removed {
        writer.limit(limit)?;
    }
    for name in gate.policy().limits() {
        // One that has gone meanwhile has nothing to save, nor has one that is kept elsewhere.
        if let Some(limit) = gate.save_limit(name) {
            writer.limit(&limit)?;
        }
    }
    for limit in gate.save_removed().iter().filter(|limit| !removed.contains(limit)) {
        writer.limit(limit)?;
    }
    if let Some(keys) = throttle.table() {
        let algorithm = keys.algorithm();
        writer.keys(keys.iter().filter(|(_, word)| algorithm.spent(*word, moment.clock) > 0))?;
    }
    writer.finish()
}

/// Puts back what was saved, as it is at the moment that `now` tells. What was spent under
/// limits that have gone, or count something else, is kept in case they come back.
///
/// Both must have the [seed](Reader::seed) of the snapshot.
///
/// # Errors
///
/// If the snapshot is damaged or cannot be read. Then a part of it may have been put back.
pub fn restore<S: Saves>(
    reader: &mut Reader<impl Read>,
    gate: &Gate<S>,
    throttle: &Throttle<impl Clock>,
    now: impl Fn() -> Moment,
) -> Result<(), Error> {
    let saved = *reader.moment();
    // For every piece anew: reading them takes time too.
    let then = || saved.clock + saved.until(&now());
    let into_gate =
        |state| gate.restore(state, then()).map_err(|error| Error::damaged(error.to_string()));
    let mut lists = Vec::new();
    while let Some(piece) = reader.next_piece()? {
        match piece {
            Piece::List(kind, entry, added) => lists.push((kind, entry, added)),
            Piece::Limit(mut limit) => {
                // Time has passed for what was removed as well.
                let passed = saved.until(&now());
                limit.removed_for = limit.removed_for.map(|time| time + passed);
                into_gate(SavedState::new(vec![limit], Vec::new()))?;
            }
            Piece::Keys(callers) => {
                let Some(keys) = throttle.table() else { continue };
                let (algorithm, then, now) = (keys.algorithm(), then(), throttle.clock().now());
                let rebased = callers
                    .into_iter()
                    .map(|(caller, word)| (caller, algorithm.rebase(word, then, now)));
                keys.restore_at(rebased, now);
            }
        }
    }
    into_gate(SavedState::new(Vec::new(), lists))
}
