//! What Spillgate costs a request of a real server, what a policy costs a decision, how
//! much the server answers that stands alone, also over gRPC, how much its proxy passes on,
//! what it costs to share limits, and what adaptive limits do for a service under overload.

mod adaptive;
mod child;
mod client;
mod cluster;
mod cpus;
mod grpc;
mod kind;
mod overhead;
mod policy;
mod probe;
mod process;
mod proxy;
mod report;
mod results;
mod routers;
mod server;
mod settings;
mod standalone;
mod stats;
mod turns;
mod wrk;

use std::error::Error;
use std::process::ExitCode;

use crate::report::{Report, progress};
use crate::settings::{Command, Scope, Settings, USAGE};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    match Command::parse(args)? {
        Command::Measure(settings) => measure(&settings)?,
        Command::Serve(kind, allowance) => server::run(kind, allowance)?,
        Command::Overload(cost, policy) => adaptive::service::run(cost, &policy)?,
        Command::Help => println!("{USAGE}"),
    }
    Ok(())
}

/// One question after the other; whether the servers limit at all comes first.
fn measure(settings: &Settings) -> Result<()> {
    let mut report = Report::begin(settings)?;
    if settings.scope.has_http() {
        report.add(probe::ask(settings)?)?;
        report.add(overhead::measure(settings)?)?;
        report.add(routers::measure(settings)?)?;
    }
    if settings.scope.has_policy() {
        report.add(policy::measure(settings)?)?;
    }
    if settings.scope == Scope::Server {
        report.add(standalone::probe(settings)?)?;
        report.add(standalone::measure(settings)?)?;
    }
    if settings.scope == Scope::Cluster {
        report.add(cluster::measure(settings)?)?;
    }
    if settings.scope == Scope::Grpc {
        report.add(grpc::probe(settings)?)?;
        report.add(grpc::measure(settings)?)?;
    }
    if settings.scope == Scope::Proxy {
        report.add(proxy::measure(settings)?)?;
    }
    if settings.scope == Scope::Adaptive {
        report.add(adaptive::measure(settings)?)?;
    }
    let path = report.conclude()?;
    progress(format_args!("written to {}", path.display()));
    Ok(())
}
