//! A headless Chromium that a test has started.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::spawn;

use spillgate_testing::program;
use tempfile::TempDir;

use crate::common::server::until;

/// Ends with the last test that uses it, and what it has stored ends with it.
pub(crate) struct Browser {
    child: Child,
    folder: TempDir,
    /// What it has logged, for failing tests.
    log: Arc<Mutex<String>>,
}

/// Tests that run at the same time share one: a browser starts slowly and is large.
static SHARED: Mutex<Weak<Browser>> = Mutex::new(Weak::new());

const FLAGS: [&str; 14] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--no-proxy-server",
    // Whatever asks for another machine finds none.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
];

impl Browser {
    pub(crate) fn shared() -> Arc<Self> {
        // A test that failed holding it has not harmed it.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let browser = Arc::new(Self::launch());
            *shared = Arc::downgrade(&browser);
            browser
        })
    }

    fn launch() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = program("chromium");
        command.args(FLAGS).arg(format!("--user-data-dir={}", folder.path().display()));
        command.env("HOME", folder.path()).arg("about:blank");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, shared) = (child.stderr.take().unwrap(), Arc::clone(&log));
        spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = shared.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let browser = Self { child, folder, log };
        until("a browser that listens", || browser.endpoint().is_some());
        browser
    }

    /// Where its debugger listens, which it writes to a file.
    pub(crate) fn endpoint(&self) -> Option<(SocketAddr, String)> {
        let file = self.folder.path().join("DevToolsActivePort");
        let text = std::fs::read_to_string(file).ok()?;
        let (port, path) = text.trim().split_once('\n')?;
        Some((SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?)), path.to_owned()))
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
