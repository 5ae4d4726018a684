use std::collections::HashMap;

use super::*;

/// A container under version 2, which sees its own group as the outermost.
const CONTAINER: (&str, &str) = (
    "0::/\n",
    "613 512 0:55 / / rw,relatime - overlay overlay rw\n\
     617 613 0:58 / /sys ro,nosuid - sysfs sysfs ro\n\
     618 617 0:28 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw\n",
);

/// A service under version 2.
const SERVICE: (&str, &str) = (
    "0::/system.slice/api.service\n",
    "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
);

/// Docker under version 1, which shows the host's groups.
const DOCKER_V1: (&str, &str) = (
    "12:cpuset:/docker/0af3\n4:cpu,cpuacct:/docker/0af3\n1:name=systemd:/docker/0af3\n0::/x\n",
    "700 690 0:29 /docker/0af3 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
     701 690 0:30 /docker/0af3 /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n",
);

/// Both versions, and the controllers apart.
const HYBRID: (&str, &str) = (
    "9:name=systemd:/\n4:memory:/a/b\n2:cpuacct:/\n1:cpu:/\n0::/\n",
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
     32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
     33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n\
     41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
);

fn find((cgroup, mountinfo): (&str, &str)) -> Option<Vec<ControlGroup>> {
    ControlGroup::find(cgroup, mountinfo)
}

fn unified(folder: &str) -> ControlGroup {
    ControlGroup::Unified(folder.into())
}

fn split(cpu: &str, cpuacct: &str) -> ControlGroup {
    ControlGroup::Split { cpu: cpu.into(), cpuacct: cpuacct.into() }
}

#[test]
fn groups_are_found_from_the_own_one_outwards() {
    assert_eq!(find(CONTAINER), Some(vec![unified("/sys/fs/cgroup")]));
    let service = ["/system.slice/api.service", "/system.slice", ""];
    let service = service.map(|path| unified(&format!("/sys/fs/cgroup{path}")));
    assert_eq!(find(SERVICE), Some(service.to_vec()));
    let both = "/sys/fs/cgroup/cpu,cpuacct";
    assert_eq!(find(DOCKER_V1), Some(vec![split(both, both)]));
    let apart = split("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct");
    assert_eq!(find(HYBRID), Some(vec![apart]));
}

#[test]
fn groups_of_two_controllers_are_compared_where_they_are_the_same() {
    let (_, mountinfo) = HYBRID;
    let (cpu, cpuacct) = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct");
    let nested = vec![
        split(&format!("{cpu}/a/b"), &format!("{cpuacct}/a/b")),
        split(&format!("{cpu}/a"), &format!("{cpuacct}/a")),
        split(cpu, cpuacct),
    ];
    assert_eq!(find(("2:cpuacct:/a/b\n1:cpu:/a/b\n", mountinfo)), Some(nested));
    let own = vec![split(&format!("{cpu}/a/b"), &format!("{cpuacct}/c"))];
    assert_eq!(find(("2:cpuacct:/c\n1:cpu:/a/b\n", mountinfo)), Some(own));
}

#[test]
fn a_group_that_cannot_be_seen_is_the_mount_point() {
    let (_, mountinfo) = CONTAINER;
    for path in ["/../../init.scope", "/.."] {
        let found = find((&format!("0::{path}\n"), mountinfo));
        assert_eq!(found, Some(vec![unified("/sys/fs/cgroup")]), "{path}");
    }
    // A bind mount of another group comes first.
    let mounts = "1 1 0:30 /other /mnt/cg rw - cgroup2 cgroup2 rw\n\
                  2 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let found = find(("0::/own\n", mounts)).unwrap();
    assert_eq!(found[0], unified("/sys/fs/cgroup/own"));
}

#[test]
fn paths_may_have_spaces_and_colons() {
    let mounts = "1 1 0:30 / /sys/fs/c\\040g\\134 rw - cgroup2 cgroup2 rw\n";
    let found = find(("0::/a:b c\n", mounts)).unwrap();
    assert_eq!(found[0], unified("/sys/fs/c g\\/a:b c"));
    assert_eq!(unescaped("\\"), "\\");
    assert_eq!(unescaped("a\\04"), "a\\04");
    assert_eq!(unescaped("\\777\\400é"), "\\777\\400é");
}

#[test]
fn nonsense_is_no_group() {
    let (cgroup, mountinfo) = SERVICE;
    for cgroup in ["", "\n", "0:", "0::", ":::", "1:cpu:/x\n", "0:x:/\n"] {
        assert!(find((cgroup, mountinfo)).is_none_or(|groups| groups.len() == 1), "{cgroup:?}");
    }
    for mountinfo in ["", " - ", "1 2 - cgroup2", "1 2 3 / - cgroup2 x rw\n", "a b c d e - cgroup"]
    {
        assert_eq!(find((cgroup, mountinfo)), None, "{mountinfo:?}");
    }
    let deep = format!("0::{}\n", "/a".repeat(5_000));
    assert_eq!(find((&deep, mountinfo)).unwrap().len(), DEEPEST);
    for end in 0..mountinfo.len() {
        let _ = find((cgroup, &mountinfo[..end]));
    }
}

fn usage(group: &ControlGroup, files: &[(&str, &str)]) -> Option<Usage> {
    let files: HashMap<PathBuf, &str> =
        files.iter().map(|(path, text)| (PathBuf::from(path), *text)).collect();
    group.usage(&|path| files.get(path).map(|text| (*text).to_owned()))
}

const CPU_STAT: &str = "usage_usec 123456\nuser_usec 100000\nsystem_usec 23456\nnr_periods 5\n\
                        nr_throttled 1\nthrottled_usec 999\n";

#[test]
fn version_two_has_microseconds_and_a_quota_in_one_file() {
    let group = unified("/g");
    let of = |max| usage(&group, &[("/g/cpu.stat", CPU_STAT), ("/g/cpu.max", max)]).unwrap();
    assert_eq!(of("150000 100000\n"), Usage { used: 123_456_000, quota: Some(1.5) });
    for max in ["max 100000\n", "0 100000\n", "1 0\n", "-1 5\n", "5\n", "", "150000 1000", "x y\n"]
    {
        assert_eq!(of(max).quota, None, "{max:?}");
    }
    let outermost = usage(&group, &[("/g/cpu.stat", CPU_STAT)]);
    assert_eq!(outermost, Some(Usage { used: 123_456_000, quota: None }));
    for stat in ["", "usage_usec \n", "usage_usec 12", "usage_usec 18446744073709551615\n", "\n"] {
        assert_eq!(usage(&group, &[("/g/cpu.stat", stat)]), None, "{stat:?}");
    }
    assert_eq!(usage(&group, &[]), None);
}

#[test]
fn version_one_has_nanoseconds_and_a_quota_in_two_files() {
    let group = split("/c", "/a");
    let of = |quota, period| {
        let files = [
            ("/a/cpuacct.usage", "98765\n"),
            ("/c/cpu.cfs_quota_us", quota),
            ("/c/cpu.cfs_period_us", period),
        ];
        usage(&group, &files).unwrap()
    };
    assert_eq!(of("50000\n", "100000\n"), Usage { used: 98_765, quota: Some(0.5) });
    assert_eq!(of("-1\n", "100000\n").quota, None);
    assert_eq!(of("50000\n", "0\n").quota, None);
    assert_eq!(of("5000", "100000\n").quota, None, "a cut number");
    assert_eq!(usage(&group, &[("/a/cpuacct.usage", "98765")]), None, "a cut number");
}
