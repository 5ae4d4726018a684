use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::*;

/// Files that a test writes.
#[derive(Clone, Default)]
struct Tree(Arc<Mutex<HashMap<PathBuf, String>>>);

impl Tree {
    fn write(&self, path: &str, text: impl Into<String>) {
        self.0.lock().unwrap().insert(path.into(), text.into());
    }

    fn remove(&self, path: &str) {
        self.0.lock().unwrap().remove(Path::new(path));
    }

    /// A signal that reads them, as a share of two processors.
    fn cpu(&self, source: CpuSource) -> Cpu {
        let tree = self.clone();
        let read = move |path: &Path| Some(tree.0.lock().unwrap().get(path)?.clone().into_bytes());
        let mut cpu = Cpu { read: Box::new(read), ..Cpu::new(source) };
        assert_eq!(cpu.read(at(0)), None, "nothing to compare with");
        cpu.processors = Some(2.0);
        cpu
    }

    fn process(&self, user: u64, system: u64) {
        let ids = "4194304 100 0 0 0";
        self.write(
            "/proc/self/stat",
            format!("1 (a) b) S 1 1 1 0 -1 {ids} {user} {system} 0 0 20 0\n"),
        );
    }

    fn machine(&self, busy: u64, idle: u64) {
        self.write("/proc/stat", format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n"));
    }

    /// Two nested groups of version 2.
    fn groups(&self, own: (u64, &str), outer: (u64, &str)) {
        self.write("/proc/self/cgroup", "0::/pod/app\n");
        self.write("/proc/self/mountinfo", "1 1 0:30 / /cg rw - cgroup2 cgroup2 rw\n");
        for (folder, (usec, max)) in [("/cg/pod/app", own), ("/cg/pod", outer)] {
            self.write(&format!("{folder}/cpu.stat"), format!("usage_usec {usec}\n"));
            self.write(&format!("{folder}/cpu.max"), format!("{max}\n"));
        }
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000) + Duration::from_millis(ms)
}

#[track_caller]
fn assert_near(load: Option<f64>, expected: f64) {
    let load = load.expect("a load");
    assert!((load - expected).abs() < 1e-9, "{load}, not {expected}");
}

#[test]
fn a_process_is_a_share_of_its_processors() {
    let tree = Tree::default();
    tree.process(100, 50);
    let mut cpu = tree.cpu(CpuSource::Process);
    // 100 ticks a second: 0.5 s of 2 × 0.5 s.
    tree.process(140, 60);
    assert_near(cpu.read(at(500)), 0.5);
}

#[test]
fn the_kernel_says_how_long_a_tick_is() {
    let tree = Tree::default();
    let auxv = [17, 64_usize].map(usize::to_ne_bytes).concat();
    tree.write("/proc/self/auxv", String::from_utf8(auxv).unwrap());
    tree.process(0, 0);
    let mut cpu = tree.cpu(CpuSource::Process);
    tree.process(32, 0);
    assert_near(cpu.read(at(500)), 0.5);
}

#[test]
fn a_machine_is_busy_or_idle() {
    let tree = Tree::default();
    tree.machine(1_000, 9_000);
    let mut cpu = tree.cpu(CpuSource::Machine);
    tree.machine(1_030, 9_010);
    assert_near(cpu.read(at(500)), 0.75);
}

#[test]
fn the_group_nearest_to_its_quota_counts() {
    let tree = Tree::default();
    tree.groups((0, "100000 100000"), (0, "400000 100000"));
    let mut cpu = tree.cpu(CpuSource::Group);
    // Own: 0.1 s of 0.5. Around it, with others: 1.5 s of 2.
    tree.groups((100_000, "100000 100000"), (1_500_000, "400000 100000"));
    assert_near(cpu.read(at(500)), 0.75);

    let tree = Tree::default();
    tree.groups((0, "100000 100000"), (0, "max 100000"));
    let mut cpu = tree.cpu(CpuSource::Group);
    tree.groups((100_000, "100000 100000"), (1_500_000, "max 100000"));
    assert_near(cpu.read(at(500)), 0.2);

    let tree = Tree::default();
    tree.groups((0, "max 100000"), (0, "max 100000"));
    let mut cpu = tree.cpu(CpuSource::Group);
    tree.groups((100_000, "max 100000"), (1_500_000, "max 100000"));
    assert_near(cpu.read(at(500)), 0.1);
}

#[test]
fn without_a_quota_the_machine_is_what_is_short() {
    let tree = Tree::default();
    tree.machine(0, 0);
    tree.groups((0, "max 100000"), (0, "max 100000"));
    let mut cpu = tree.cpu(CpuSource::Detected);
    tree.machine(30, 70);
    assert_near(cpu.read(at(500)), 0.3);
    // A quota that comes while it runs is compared from then on.
    tree.groups((0, "100000 100000"), (0, "max 100000"));
    assert_near(cpu.read(at(1_000)), 0.3);
    tree.groups((500_000, "100000 100000"), (0, "max 100000"));
    assert_near(cpu.read(at(1_500)), 1.0 + 0.95 * (0.3 - 1.0));
}

#[test]
fn what_was_seen_fades_with_time() {
    let tree = Tree::default();
    tree.machine(0, 0);
    let mut cpu = tree.cpu(CpuSource::Machine);
    tree.machine(100, 0);
    assert_near(cpu.read(at(500)), 1.0);
    tree.machine(100, 100);
    assert_near(cpu.read(at(1_000)), 0.95);
    tree.machine(100, 200);
    assert_near(cpu.read(at(2_000)), 0.95 * 0.95 * 0.95);
}

#[test]
fn a_load_is_from_zero_to_one() {
    let tree = Tree::default();
    tree.process(0, 0);
    let mut cpu = tree.cpu(CpuSource::Process);
    tree.process(u64::MAX / 4, 7);
    assert_near(cpu.read(at(500)), 1.0);
}

#[test]
fn counters_that_go_back_are_no_news() {
    let tree = Tree::default();
    tree.machine(1_000, 1_000);
    let mut cpu = tree.cpu(CpuSource::Machine);
    tree.machine(1_050, 1_050);
    assert_near(cpu.read(at(500)), 0.5);
    // A processor was taken away, and then nothing is counted at all.
    tree.machine(500, 2_000);
    assert_near(cpu.read(at(1_000)), 0.5);
    assert_near(cpu.read(at(1_500)), 0.5);
    tree.machine(600, 2_000);
    assert_near(cpu.read(at(2_000)), 1.0 + 0.95 * (0.5 - 1.0));
}

#[test]
fn time_that_goes_back_or_jumps_begins_anew() {
    let tree = Tree::default();
    tree.process(0, 0);
    let mut cpu = tree.cpu(CpuSource::Process);
    tree.process(100, 0);
    assert_near(cpu.read(at(500)), 1.0);
    assert_near(cpu.read(at(500)), 1.0);
    for jump in [7_200_000, 0] {
        assert_eq!(cpu.read(at(jump)), None);
        cpu.processors = Some(2.0);
        let Some((_, Used::Process(seconds, _))) = cpu.last else { panic!("{cpu:?}") };
        tree.process((seconds * 100.0) as u64 + 50, 0);
        assert_near(cpu.read(at(jump + 500)), 0.5);
    }
}

#[test]
fn a_signal_that_was_missing_comes_back() {
    let tree = Tree::default();
    tree.groups((0, "100000 100000"), (0, "max 100000"));
    let mut cpu = tree.cpu(CpuSource::Group);
    tree.groups((250_000, "100000 100000"), (0, "max 100000"));
    assert_near(cpu.read(at(500)), 0.5);
    tree.remove("/cg/pod/app/cpu.stat");
    assert_eq!(cpu.read(at(1_000)), None);
    tree.write("/cg/pod/app/cpu.stat", "usage_usec nonsense\n");
    assert_eq!(cpu.read(at(1_500)), None);
    // Moved to another group.
    tree.write("/proc/self/cgroup", "0::/new\n");
    tree.write("/cg/new/cpu.stat", "usage_usec 7\n");
    tree.write("/cg/new/cpu.max", "50000 100000\n");
    assert_eq!(cpu.read(at(2_000)), None, "nothing to compare with");
    tree.write("/cg/new/cpu.stat", "usage_usec 50007\n");
    assert_near(cpu.read(at(2_500)), 0.2);
}

#[test]
fn without_these_files_there_is_no_signal() {
    for source in [CpuSource::Process, CpuSource::Machine, CpuSource::Group, CpuSource::Detected] {
        let mut cpu = Tree::default().cpu(source);
        assert_eq!((cpu.read(at(500)), cpu.read(at(1_000))), (None, None), "{source:?}");
    }
}

#[test]
fn a_file_is_read_in_part_if_it_has_no_end() {
    let zeros = read_file(Path::new("/dev/zero"));
    assert!(zeros.is_none_or(|zeros| zeros.len() as u64 == LARGEST_FILE));
    assert_eq!(read_file(Path::new("/no/such/file")), None);
    assert_eq!(text_of(b"a\xffb".to_vec()).as_deref(), Some("a\u{fffd}b"));
}

/// A thread of its own, at full speed, has no more than the quota.
#[test]
fn a_process_is_a_share_of_the_smallest_quota() {
    for (own, outer, load) in [
        ("50000 100000", "max 100000", 0.8),
        ("100000 100000", "50000 100000", 0.8),
        ("max 100000", "max 100000", 0.2),
        ("800000 100000", "max 100000", 0.2),
    ] {
        let tree = Tree::default();
        tree.process(0, 0);
        tree.groups((0, own), (0, outer));
        let mut cpu = tree.cpu(CpuSource::Process);
        // 0.2 s of 0.5 s.
        tree.process(20, 0);
        assert_near(cpu.read(at(500)), load);
    }
}
