//! Control groups: where they are, what they have used, and what they may use.

use std::path::{Component, Path, PathBuf};

use super::proc::number;

/// The folders of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControlGroup {
    /// Of version 2.
    Unified(PathBuf),
    /// Of version 1: those of the controllers `cpu` and `cpuacct`.
    Split { cpu: PathBuf, cpuacct: PathBuf },
}

/// What a group has used, and may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Usage {
    /// Nanoseconds of processor time since it began.
    pub(super) used: u64,
    /// How many processors it may use; `None` if it has no quota.
    pub(super) quota: Option<f64>,
}

/// Groups are rarely nested deeper than five or six.
const DEEPEST: usize = 16;

impl ControlGroup {
    /// The group of this process, and those around it, by `/proc/self/cgroup` and
    /// `/proc/self/mountinfo`.
    pub(super) fn find(cgroup: &str, mountinfo: &str) -> Option<Vec<Self>> {
        let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
        let place = |controller: &str| {
            let path = cgroup.lines().find_map(|line| path_in(line, controller))?;
            let mut fitting = mounts.iter().filter(|mount| mount.has(controller));
            let shows = |mount: &&Mount| Path::new(path).starts_with(&mount.root);
            let mount = fitting.clone().find(shows).or_else(|| fitting.next())?;
            Some(GroupPlace { mount: mount.point.clone(), inside: mount.inside(path) })
        };
        if let (Some(cpu), Some(cpuacct)) = (place("cpu"), place("cpuacct")) {
            // In different groups, only their own can be compared.
            let depth = if cpu.inside == cpuacct.inside { DEEPEST } else { 1 };
            let pairs = cpu.folders().zip(cpuacct.folders()).take(depth);
            return Some(pairs.map(|(cpu, cpuacct)| Self::Split { cpu, cpuacct }).collect());
        }
        Some(place("")?.folders().take(DEEPEST).map(Self::Unified).collect())
    }

    pub(super) fn usage(&self, read: &dyn Fn(&Path) -> Option<String>) -> Option<Usage> {
        match self {
            Self::Unified(folder) => {
                let used = usage_usec(&read(&folder.join("cpu.stat"))?)?.checked_mul(1_000)?;
                // The outermost group has no such file.
                let quota = read(&folder.join("cpu.max")).and_then(|text| quota(&text));
                Some(Usage { used, quota })
            }
            Self::Split { cpu, cpuacct } => {
                let used = whole(&read(&cpuacct.join("cpuacct.usage"))?)?;
                let file = |name| whole(&read(&cpu.join(name))?);
                let (quota, period) = (file("cpu.cfs_quota_us"), file("cpu.cfs_period_us"));
                Some(Usage { used, quota: quota.zip(period).and_then(processors) })
            }
        }
    }
}

/// A group inside a mounted hierarchy.
struct GroupPlace {
    mount: PathBuf,
    inside: PathBuf,
}

impl GroupPlace {
    /// The folder of the group, and of each group around it.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.inside.ancestors().map(|inside| self.mount.join(inside))
    }
}

/// A mounted hierarchy.
struct Mount {
    /// The group that is seen at the mount point.
    root: String,
    point: PathBuf,
    /// Of version 1; `None` for version 2.
    controllers: Option<String>,
}

impl Mount {
    /// `36 35 98:0 ROOT POINT rw,noatime master:1 - TYPE source OPTIONS`
    fn parse(line: &str) -> Option<Self> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let mut kind = kind.split(' ');
        let controllers = match kind.next()? {
            "cgroup2" => None,
            "cgroup" => Some(kind.nth(1)?.to_owned()),
            _ => return None,
        };
        Some(Self { root, point: point.into(), controllers })
    }

    /// Whether it has a controller of version 1, or is of version 2 if that is empty.
    fn has(&self, controller: &str) -> bool {
        match &self.controllers {
            Some(controllers) => controllers.split(',').any(|it| it == controller),
            None => controller.is_empty(),
        }
    }

    /// The path of a group below the mount point. In a container, it may be one that cannot be
    /// seen: then the mount point is the best there is.
    fn inside(&self, path: &str) -> PathBuf {
        let inside = Path::new(path).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let is_below = inside.components().all(|part| matches!(part, Component::Normal(_)));
        if is_below { inside.to_owned() } else { PathBuf::new() }
    }
}

/// The path of a line such as `4:cpu,cpuacct:/docker/0af3`, if it is of a controller; of version 2
/// (`0::/system.slice`), if that is empty.
fn path_in<'l>(line: &'l str, controller: &str) -> Option<&'l str> {
    let mut fields = line.splitn(3, ':');
    let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let has = match controller {
        "" => id == "0" && controllers.is_empty(),
        _ => controllers.split(',').any(|it| it == controller),
    };
    has.then_some(path)
}

/// Text with spaces and others as octal numbers: `a\040b`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => plain.push(code.into()),
            None => plain.push('\\'),
        }
        plain.push_str(if code.is_some_and(|code| code.is_ascii()) { &part[3..] } else { part });
    }
    plain
}

/// The processor time in `cpu.stat`, in microseconds.
fn usage_usec(stat: &str) -> Option<u64> {
    stat.split_inclusive('\n').find_map(|line| whole(line.strip_prefix("usage_usec ")?))
}

/// The quota in `cpu.max`: `50000 100000` is half a processor, `max 100000` all there are.
fn quota(max: &str) -> Option<f64> {
    let (quota, period) = max.strip_suffix('\n')?.split_once(' ')?;
    processors((number(quota)?, number(period)?))
}

/// A quota per period.
fn processors((quota, period): (u64, u64)) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// A number that ends with its line, so that it has all of its digits.
fn whole(line: &str) -> Option<u64> {
    number(line.strip_suffix('\n')?)
}

#[cfg(test)]
mod tests;
