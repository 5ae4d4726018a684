use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::Server;

/// A Redis whose clock can be set.
pub(crate) struct Shifted {
    pub(crate) server: Server,
    shift: File,
    _folder: TempDir,
}

impl Shifted {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (library, file) = (folder.path().join("shifted.so"), folder.path().join("shift"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/shifted.c");
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
        assert!(compiled.unwrap().success());
        let mut shift = File::create(&file).unwrap();
        shift.write_all(&0_i64.to_ne_bytes()).unwrap();
        let variables = [("LD_PRELOAD", library), ("CLOCK_SHIFT", file)];
        let server = Server::redis_with_variables(&variables);
        Self { server, shift, _folder: folder }
    }

    /// Sets the clock ahead by so much of what it should be.
    pub(crate) fn set_ahead(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap();
        self.shift.write_all_at(&micros.to_ne_bytes(), 0).unwrap();
    }
}
