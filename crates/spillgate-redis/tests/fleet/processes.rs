use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::fleet::order::Order;
use crate::fleet::worker::{FILE, READY, Seen};

/// Processes that end with the test, each with a file of its own.
struct Processes(Vec<(Child, PathBuf)>);

/// Has all of the fleet carry out an order, and returns what each has seen.
pub(crate) fn run(order: &Order, folder: &Path) -> Vec<Seen> {
    let mut processes =
        Processes((0..order.processes[1]).map(|number| start(order, folder, number)).collect());
    for (child, _) in &mut processes.0 {
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let is_ready = output.by_ref().lines().any(|line| line.unwrap().ends_with(READY));
        assert!(is_ready, "a process has ended before it was ready");
        // It could not print what else it has to say if nobody held the other end.
        child.stdout = Some(output.into_inner());
    }
    for (child, _) in &mut processes.0 {
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
    }
    for (child, _) in &mut processes.0 {
        let status = child.wait().unwrap();
        assert!(status.success(), "a process of the fleet failed: {status}");
    }
    let read = |(_, file): &(Child, PathBuf)| std::fs::read_to_string(file).unwrap();
    processes.0.iter().map(|process| Seen::from_text(&read(process))).collect()
}

fn start(order: &Order, folder: &Path, number: u64) -> (Child, PathBuf) {
    let file = folder.join(format!("process {number}"));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["fleet::worker::worker", "--exact", "--ignored", "--nocapture"])
        .env(Order::VARIABLE, order.to_text())
        .env(FILE, &file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    (child, file)
}

impl Drop for Processes {
    fn drop(&mut self) {
        for (child, _) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
