//! What Redis says of itself.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::bed::Bed;
use crate::Result;
use crate::report::{Table, digits};
use crate::standalone::redis_benchmark;

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

/// What commands cost the engine's only thread.
pub fn costs(bed: &Bed) -> Result<Table> {
    let mut table = Table::new("What a command costs Redis itself", "command");
    table.header.extend(["µs", "called"].map(str::to_owned));
    for name in ["evalsha", "get", "incr", "expire"] {
        let (calls, micros) = command(bed, name)?;
        table.rows.push(vec![name.to_uppercase(), digits(micros), calls.to_string()]);
    }
    table.notes.push("as `INFO commandstats` has it, without reading and writing".to_owned());
    let benchmark = benchmark(bed)?;
    let note = format!("`redis-benchmark -c 64` with the same `EVALSHA`: {benchmark:.0} a second");
    table.notes.push(note);
    Ok(table)
}

/// What redis-benchmark makes of the script.
fn benchmark(bed: &Bed) -> Result<f64> {
    let port = bed.redis.resp.to_string();
    let Some((key, asked)) = bed.bare.calls.first() else { return Ok(0.0) };
    let mut child = Command::new("redis-benchmark")
        .args(["-p", &port, "-c", "64", "-n", "100000", "--csv", "-x", "EVALSHA"])
        .args([&bed.bare.script, "1", &String::from_utf8_lossy(key)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // What is asked has bytes in it that no argument of a program may have.
    if let Some(mut input) = child.stdin.take() {
        input.write_all(asked)?;
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let run = redis_benchmark::parse(&text);
    Ok(run.ok_or_else(|| format!("redis-benchmark says {text}, not understood here"))?.per_second)
}
