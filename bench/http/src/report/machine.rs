//! Where and when, and with which versions.

use std::fmt::Write as _;

use super::facts;
use crate::settings::{Scope, Settings};
use crate::{adaptive, cluster, grpc, overhead, proxy, standalone, wrk};

/// The crates that a result depends on.
const CRATES: [&str; 11] = [
    "spillgate-redis",
    "spillgate-tower",
    "spillgate-policy",
    "spillgate",
    "tower_governor",
    "governor",
    "axum",
    "hyper",
    "tonic",
    "redis",
    "tokio",
];

/// As a Markdown list.
pub fn describe(settings: &Settings) -> String {
    let mut list = String::new();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (cpu, kernel, load) = (facts::processor(), facts::kernel(), facts::load());
    let (script, _) = settings.scope.names();
    let command = format!("{script} {}", args.join(" "));
    let _ = writeln!(list, "- command: `{}`, {} rounds", command.trim(), settings.rounds);
    let _ = writeln!(list, "- processor: {cpu}, {threads} hardware threads");
    let _ = writeln!(list, "- kernel: {kernel}");
    let _ = writeln!(list, "- load before the run: {load}");
    let _ = writeln!(list, "- compiler: {}", facts::compiler());
    if settings.scope.has_http() {
        let version = wrk::version().unwrap_or_else(facts::unknown);
        let command = wrk::command(&overhead::LOAD, settings.seconds);
        let _ = writeln!(list, "- client: `{command}`, {version}");
    }
    list.push_str(&match settings.scope {
        Scope::Server => standalone::describe(settings),
        Scope::Grpc => grpc::describe(settings),
        Scope::Proxy => proxy::describe(settings),
        Scope::Cluster => cluster::describe(settings),
        Scope::Adaptive => adaptive::describe(settings),
        Scope::All | Scope::Http | Scope::Policy => String::new(),
    });
    // Of servers that stand alone nothing is in this program.
    if matches!(settings.scope, Scope::Server | Scope::Proxy) {
        return list;
    }
    let _ = write!(
        list,
        "- crates: {}",
        facts::versions(include_str!("../../../../Cargo.lock"), &CRATES)
    );
    list
}

/// The time in UTC, as `2030-12-31T23:59`.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M").to_string()
}
