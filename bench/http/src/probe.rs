//! Does it limit at all? Asked before anything is timed: a layer that does not is fast.

use crate::Result;
use crate::child::Server;
use crate::kind::Kind;
use crate::report::{Table, progress};
use crate::results::Findings;
use crate::server::Allowance;
use crate::settings::Settings;

const BURST: u32 = 5;
const REQUESTS: usize = 20;

/// One row a limiter. Those that do not limit end the run.
pub fn ask(settings: &Settings) -> Result<Findings> {
    if !settings.wants("probe") {
        return Ok(Findings::default());
    }
    progress(format_args!(
        "probe: of burst {BURST}, the first {BURST} of {REQUESTS} requests pass"
    ));
    let mut table = Table::new("Do they limit?", "server");
    table.header.extend(["passed", "refused", "headers of one that passed"].map(str::to_owned));
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_limiter()) {
        table.rows.push(row(kind)?);
    }
    let question = format!("of burst {BURST}, exactly the first {BURST} of {REQUESTS} must pass");
    table.notes.push(question);
    Ok(Findings { tables: vec![table], ..Findings::default() })
}

fn row(kind: Kind) -> Result<Vec<String>> {
    let server = Server::start(kind, Allowance::Burst(BURST))?;
    let responses: Vec<_> = (0..REQUESTS).map(|_| server.hello()).collect::<Result<_>>()?;
    let (passed, refused) = responses.split_at(BURST as usize);
    let is_right = passed.iter().all(|response| response.status == 200)
        && refused.iter().all(|response| response.status == 429);
    if !is_right {
        let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
        return Err(format!("{kind} does not limit to {BURST}: it answered {statuses:?}").into());
    }
    let headers = passed.iter().flat_map(|response| &response.headers);
    let mut headers: Vec<&str> =
        headers.map(String::as_str).filter(|name| name.contains("ratelimit")).collect();
    headers.sort_unstable();
    headers.dedup();
    let headers = if headers.is_empty() { "none".to_owned() } else { headers.join(", ") };
    Ok(vec![kind.to_string(), passed.len().to_string(), refused.len().to_string(), headers])
}
