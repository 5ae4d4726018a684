//! Do they limit at all? Asked before anything is timed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use super::contender::{self, Ask, Call, Contender, Request};
use super::lane::Lane;
use super::program::Running;
use crate::Result;
use crate::client;
use crate::report::{Table, progress};
use crate::results::Findings;
use crate::settings::{Programs, Settings};

/// How many calls are made for one key.
const CALLS: usize = 40;

/// One row a limiter. Those that do not limit end the run.
pub fn ask(settings: &Settings) -> Result<Findings> {
    progress(format_args!("probe: of {CALLS} calls for one key, the burst passes"));
    let mut table = Table::new("Do they limit?", "call");
    table.header.extend(["passed", "refused"].map(str::to_owned));
    let wanted = Lane::wanted(settings);
    let is_wanted = |one: &&Contender| wanted.iter().any(|lane| lane.contender.name == one.name);
    for contender in contender::ALL.iter().filter(is_wanted) {
        if let Some(burst) = contender.burst {
            table.rows.push(row(contender, burst, &settings.programs)?);
        }
    }
    table
        .notes
        .push(format!("exactly the burst, and the first of {CALLS} calls for one key, must pass"));
    Ok(Findings { tables: vec![table], ..Findings::default() })
}

fn row(contender: &Contender, burst: usize, programs: &Programs) -> Result<Vec<String>> {
    let server = contender.program.start(programs)?;
    let passed = match contender.ask {
        Ask::Resp { call, passed } => resp(&server, call, passed)?,
        Ask::Http { request, passed } => http(&server, request, passed)?,
    };
    if passed != (0..CALLS).map(|call| call < burst).collect::<Vec<_>>() {
        return Err(format!("{} does not limit to {burst}: {passed:?}", contender.name).into());
    }
    let counts = [burst, CALLS - burst].map(|count| count.to_string());
    Ok([contender.name.to_owned()].into_iter().chain(counts).collect())
}

/// Which calls passed, by the first of five numbers in a reply.
fn resp(server: &Running, call: Call, passed: &str) -> Result<Vec<bool>> {
    let mut stream = BufReader::new(TcpStream::connect((Ipv4Addr::LOCALHOST, server.resp))?);
    let command: String =
        call.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    let command = format!("*{}\r\n{command}", call.len());
    let mut answer = || {
        stream.get_mut().write_all(command.as_bytes())?;
        let mut lines = (&mut stream).lines().take(6).collect::<std::io::Result<Vec<_>>>()?;
        match lines.get_mut(1) {
            Some(first) => Ok(first == passed),
            None => Err(format!("{} was answered {lines:?}", call.join(" ")).into()),
        }
    };
    (0..CALLS).map(|_| answer()).collect()
}

fn http(server: &Running, request: Request, passed: &str) -> Result<Vec<bool>> {
    let Request { method, path, body, headers } = request;
    let place = |text: &str| text.replace("KEY", "key").replace("ADDRESS", "203.0.113.7");
    let headers: Vec<_> = headers.iter().map(|header| place(header)).collect();
    let answer = |_| {
        let text = client::ask(server.http, method, path, &headers, &place(body))?;
        Ok(text.contains(passed))
    };
    (0..CALLS).map(answer).collect()
}
