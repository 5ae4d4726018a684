use std::io::{self, Read, Write};

use spillgate::{Clock, Seed};
use spillgate_policy::store::Saves;
use spillgate_policy::{Gate, SavedState};

use super::{Error, Moment, Piece, SnapshotReader, SnapshotWriter};

/// Writes the state of a gate. Callers with a full quota are left out.
///
/// Nothing waits for it but a change of the policy or of a list, and that only while one
/// limit is copied.
///
/// # Errors
///
/// If it cannot be written.
pub fn save<S: Saves>(
    gate: &Gate<S>,
    clock: &impl Clock,
    seed: Seed,
    out: impl Write,
) -> io::Result<u64> {
    let mut writer = SnapshotWriter::new(out, &Moment::now(clock), seed)?;
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
    writer.finish()
}

/// Puts back what was saved, as it is at the moment that `now` tells. What was spent under
/// limits that have gone, or count something else, is kept in case they come back.
///
/// The gate must have the [seed](SnapshotReader::seed) of the snapshot.
///
/// # Errors
///
/// If the snapshot is damaged or cannot be read. Then a part of it may have been put back.
pub fn restore<S: Saves>(
    reader: &mut SnapshotReader<impl Read>,
    gate: &Gate<S>,
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
        }
    }
    into_gate(SavedState::new(Vec::new(), lists))
}
