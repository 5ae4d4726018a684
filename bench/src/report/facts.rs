//! What is known of the machine and of the crates that are measured. Both benchmarks use it.

use std::fs;
use std::process::Command;

pub fn processor() -> String {
    field("/proc/cpuinfo", "model name").unwrap_or_else(unknown)
}

pub fn kernel() -> String {
    line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown)
}

pub fn load() -> String {
    line("/proc/loadavg").unwrap_or_else(unknown)
}

pub fn compiler() -> String {
    let version = || {
        let output = Command::new("rustc").arg("--version").output().ok()?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    version().unwrap_or_else(unknown)
}

/// The crates as a lock file has them: some are there in more than one version.
pub fn versions(lock: &str, crates: &[&str]) -> String {
    let named = |name: &&str| {
        let heading = format!("name = \"{name}\"\nversion = \"");
        let found = lock.split(&heading).skip(1);
        let versions: Vec<&str> = found.filter_map(|rest| rest.split('"').next()).collect();
        format!("{name} {}", versions.join(" and "))
    };
    crates.iter().map(named).collect::<Vec<_>>().join(", ")
}

pub fn unknown() -> String {
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
