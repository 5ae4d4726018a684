//! Where and when, and with which versions.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::settings::{Scope, Settings};
use crate::{cluster, grpc, overhead, proxy, standalone, wrk};

/// The crates that a result depends on.
const CRATES: [&str; 11] = [
    "tollgate-redis",
    "tollgate-tower",
    "tollgate-policy",
    "tollgate",
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
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(unknown);
    let kernel = line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown);
    let load = line("/proc/loadavg").unwrap_or_else(unknown);
    let (script, _) = settings.scope.names();
    let command = format!("{script} {}", args.join(" "));
    let _ = writeln!(list, "- command: `{}`, {} rounds", command.trim(), settings.rounds);
    let _ = writeln!(list, "- processor: {cpu}, {threads} hardware threads");
    let _ = writeln!(list, "- kernel: {kernel}");
    let _ = writeln!(list, "- load before the run: {load}");
    let _ = writeln!(list, "- compiler: {}", compiler().unwrap_or_else(unknown));
    if settings.scope.has_http() {
        let version = wrk::version().unwrap_or_else(unknown);
        let command = wrk::command(&overhead::LOAD, settings.seconds);
        let _ = writeln!(list, "- client: `{command}`, {version}");
    }
    list.push_str(&match settings.scope {
        Scope::Server => standalone::describe(settings),
        Scope::Grpc => grpc::describe(settings),
        Scope::Proxy => proxy::describe(settings),
        Scope::Cluster => cluster::describe(settings),
        Scope::All | Scope::Http | Scope::Policy => String::new(),
    });
    // Of servers that stand alone nothing is in this program.
    if matches!(settings.scope, Scope::Server | Scope::Proxy) {
        return list;
    }
    let _ = write!(list, "- crates: {}", versions().join(", "));
    list
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The first `name : value` of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let file = fs::read_to_string(path).ok()?;
    let mut fields = file.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

fn compiler() -> Option<String> {
    let output = Command::new("rustc").arg("--version").output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// As the lock file has them.
fn versions() -> Vec<String> {
    let lock = include_str!("../../Cargo.lock");
    let named = |name: &&str| {
        let heading = format!("name = \"{name}\"\nversion = \"");
        let found = lock.split(&heading).skip(1);
        let versions: Vec<&str> = found.filter_map(|rest| rest.split('"').next()).collect();
        format!("{name} {}", versions.join(" and "))
    };
    CRATES.iter().map(named).collect()
}

/// The time in UTC, as `2030-12-31T23:59`.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M").to_string()
}
