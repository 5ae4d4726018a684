//! What Redis says of itself.

use super::bed::Bed;
use crate::Result;
use crate::report::{Table, digits};

/// How often a command was called so far, and how long it took each time: µs.
pub fn command(bed: &Bed, name: &str) -> Result<(u64, f64)> {
    let mut client = bed.client.clone();
    let asking = async move {
        redis::cmd("INFO").arg("commandstats").query_async::<String>(&mut client).await
    };
    let stats = bed.runtime.block_on(asking)?;
    let heading = format!("cmdstat_{name}:");
    let Some(line) = stats.lines().find_map(|line| line.strip_prefix(&heading)) else {
        return Ok((0, 0.0));
    };
    let field = |name: &str| line.split(',').find_map(|field| field.strip_prefix(name));
    let calls = field("calls=").unwrap_or_default().parse()?;
    Ok((calls, field("usec_per_call=").unwrap_or_default().parse()?))
}

/// What commands cost Redis's only thread.
pub fn costs(bed: &Bed) -> Result<Table> {
    let mut table = Table::new("What a command costs Redis itself", "command");
    table.header.extend(["µs", "called"].map(str::to_owned));
    for name in ["evalsha", "get", "incr", "expire"] {
        let (calls, micros) = command(bed, name)?;
        table.rows.push(vec![name.to_uppercase(), digits(micros), calls.to_string()]);
    }
    table.notes.push("as `INFO commandstats` has it, without reading and writing".to_owned());
    Ok(table)
}
