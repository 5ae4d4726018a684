use std::io::{self, Read, Write};

use spillgate::{Clock, Seed};
use spillgate_policy::store::Saves;
use spillgate_policy::{Error as PolicyError, Gate, SavedState};

use super::{Error, Moment, Piece, SnapshotReader, SnapshotWriter};

/// Writes the state of a gate, without callers whose quota is full. Only changes of the policy and
/// of lists wait for it, while one limit is copied.
pub fn save<S: Saves>(
    gate: &Gate<S>,
    clock: &impl Clock,
    seed: Seed,
    out: impl Write,
) -> io::Result<u64> {
    let mut writer = SnapshotWriter::new(out, &Moment::now(clock), seed)?;
    for edit in gate.save_edits() {
        writer.edit(&edit)?;
    }
    // Before and after the others: a limit may be removed or come back meanwhile.
    let removed = gate.save_removed();
    for limit in &removed {
        writer.limit(limit)?;
    }
    for name in gate.policy().limits() {
        // A limit that was removed meanwhile, or is in Redis, has nothing to save.
        if let Some(limit) = gate.save_limit(name) {
            writer.limit(&limit)?;
        }
    }
    for limit in gate.save_removed().iter().filter(|limit| !removed.contains(limit)) {
        writer.limit(limit)?;
    }
    writer.finish()
}

/// Restores a snapshot, as of the moment of `now`, into a gate with its
/// [seed](SnapshotReader::seed). State of limits that are gone, or count something else, is kept in
/// case they come back. If this fails, a part may have been restored.
///
/// Returns why changes made at run time could not be restored, if so: the first reason of each part.
/// All else is restored.
pub fn restore<S: Saves>(
    reader: &mut SnapshotReader<impl Read>,
    gate: &Gate<S>,
    now: impl Fn() -> Moment,
) -> Result<Vec<PolicyError>, Error> {
    let saved = *reader.moment();
    // Per record, since reading takes time, too.
    let then = || saved.clock + saved.until(&now());
    let mut refused = Vec::new();
    let mut into_gate = |state| refused.extend(gate.restore(state, then()).err());
    let mut edits = Vec::new();
    while let Some(piece) = reader.next_piece()? {
        match piece {
            Piece::Edit(edit) => edits.push(edit),
            Piece::Limit(mut limit) => {
                // They come first: what was spent under an override is restored under it.
                if !edits.is_empty() {
                    into_gate(SavedState::new(Vec::new(), std::mem::take(&mut edits)));
                }
                // Time has passed for removed limits, too.
                let passed = saved.until(&now());
                limit.removed_for = limit.removed_for.map(|time| time + passed);
                into_gate(SavedState::new(vec![limit], Vec::new()));
            }
        }
    }
    into_gate(SavedState::new(Vec::new(), edits));
    Ok(refused)
}
