//! Do they limit at all? Asked before anything is timed.

use super::contender::Contender;
use super::worker::Worker;
use crate::Result;
use crate::report::{Table, progress};
use crate::results::Findings;
use crate::settings::Settings;

const CALLS: usize = 40;

/// One row a contender. Those that do not limit end the run.
pub fn ask(settings: &Settings) -> Result<Findings> {
    if !settings.wants("probe") {
        return Ok(Findings::default());
    }
    progress(format_args!("probe: of {CALLS} calls for one key, the burst passes"));
    let mut table = Table::new("Do they limit?", "who");
    table.header.extend(["passed", "refused"].map(str::to_owned));
    for contender in Contender::ALL {
        let server = contender.start(&settings.programs)?;
        let passed = Worker::connect(server.port, 1)?.ask(contender, "key", CALLS)?;
        let burst = contender.burst();
        if passed != (0..CALLS).map(|call| call < burst).collect::<Vec<_>>() {
            return Err(format!("{contender} does not limit to {burst}: {passed:?}").into());
        }
        let counts = [burst, CALLS - burst].map(|count| count.to_string());
        table.rows.push([contender.to_string()].into_iter().chain(counts).collect());
    }
    let question =
        format!("exactly the burst, and the first of {CALLS} calls for one key, must pass");
    table.notes.push(question);
    Ok(Findings { tables: vec![table], ..Findings::default() })
}
