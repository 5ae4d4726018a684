//! Programs of others that tests run.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program by its name, or by its path in the repository, such as `target/python/bin/python`.
///
/// # Panics
///
/// Panics if it is not on this machine. `scripts/test --no-install` knows these words, and counts
/// the test as skipped.
#[must_use]
pub fn program(name: &str) -> Command {
    match find(name) {
        Some(path) => Command::new(path),
        None => panic!("{name} is not on this machine; ./scripts/test installs it"),
    }
}

/// Sees to it that programs are here which a shell starts.
///
/// # Panics
///
/// Panics as [`program`] does.
pub fn needs(names: &[&str]) {
    for name in names {
        let _ = program(name);
    }
}

fn find(name: &str) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.is_file();
    if name.contains('/') {
        let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        return Some(repository.join(name)).filter(is_file);
    }
    // Servers are where only an administrator's shell looks.
    let mut folders = env::var_os("PATH").unwrap_or_default();
    folders.push(OsString::from(":/usr/sbin"));
    env::split_paths(&folders).map(|folder| folder.join(name)).find(is_file)
}
