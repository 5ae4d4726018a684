//! Which limits a request meets, by its host and its path.
//!
//! Finding them costs the same among ten limits and among thousands.

mod host;
mod host_table;
mod path;
mod pattern;
mod segment;
mod tree;

use self::host_table::HostTable;
use self::tree::PathTree;

pub(crate) use self::host::{HostPattern, canonical_host};
pub(crate) use self::path::CanonicalPath;
pub(crate) use self::pattern::Pattern;

/// Whether a request is known to meet the conditions of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    Known,
    /// The host or the path could not be understood. Nobody escapes a limit by that, so
    /// whatever is asked of it counts as met.
    Assumed,
}

/// Values, such as the indexes of limits, by the hosts and paths they are for.
#[derive(Debug)]
pub(crate) struct Routes<T> {
    any_host: Paths<T>,
    by_host: HostTable<Paths<T>>,
    /// What is in `by_host`, for requests whose host is not understood: an attacker who
    /// leaves out the host should not cause a search for every host there is.
    whatever_host: Paths<T>,
}

#[derive(Debug)]
struct Paths<T> {
    any_path: Vec<T>,
    by_path: PathTree<T>,
    /// What is in `by_path`, for requests whose path is not understood.
    whatever_path: Vec<T>,
}

impl<T: Clone> Routes<T> {
    pub(crate) fn new() -> Self {
        Self {
            any_host: Paths::default(),
            by_host: HostTable::default(),
            whatever_host: Paths::default(),
        }
    }

    /// Adds a value for any of the hosts and any of the paths. An empty slice stands for
    /// all there are.
    pub(crate) fn insert(&mut self, hosts: &[HostPattern], paths: &[Pattern], value: T) {
        if hosts.is_empty() {
            return self.any_host.insert(paths, &value);
        }
        for host in hosts {
            self.by_host.entry(host).insert(paths, &value);
        }
        self.whatever_host.insert(paths, &value);
    }

    /// Visits the values for a host, in canonical form, and a path, in no particular
    /// order; `None` stands for one that is not understood.
    ///
    /// A value is visited again for each other of its patterns that matches.
    pub(crate) fn for_each(
        &self,
        host: Option<&str>,
        path: Option<&CanonicalPath<'_>>,
        visit: &mut impl FnMut(&T, Certainty),
    ) {
        self.any_host.for_each(path, visit);
        match host {
            Some(host) => self.by_host.for_each(host, &mut |paths| paths.for_each(path, visit)),
            None => {
                self.whatever_host.for_each(path, &mut |value, _| visit(value, Certainty::Assumed));
            }
        }
    }
}

impl<T: Clone> Paths<T> {
    fn insert(&mut self, paths: &[Pattern], value: &T) {
        if paths.is_empty() {
            return self.any_path.push(value.clone());
        }
        for path in paths {
            self.by_path.insert(path, value.clone());
        }
        self.whatever_path.push(value.clone());
    }

    fn for_each(&self, path: Option<&CanonicalPath<'_>>, visit: &mut impl FnMut(&T, Certainty)) {
        self.any_path.iter().for_each(|value| visit(value, Certainty::Known));
        match path {
            Some(path) => self.by_path.for_each(path, &mut |value| visit(value, Certainty::Known)),
            None => self.whatever_path.iter().for_each(|value| visit(value, Certainty::Assumed)),
        }
    }
}

// Derived, it would ask for a `T` that has a default.
impl<T> Default for Paths<T> {
    fn default() -> Self {
        Self { any_path: Vec::new(), by_path: PathTree::default(), whatever_path: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::Certainty::{Assumed, Known};
    use super::*;

    /// Limits with the hosts and paths they are for.
    const LIMITS: &[(&str, &[&str], &[&str])] = &[
        ("all", &[], &[]),
        ("api", &["api.example.com"], &[]),
        ("sub", &["*.example.com"], &[]),
        ("users", &[], &["/users/{id}", "/people/{id}"]),
        ("api-users", &["api.example.com", "api.example.org"], &["/users/{id}"]),
    ];

    type Met<'a> = &'a [(&'a str, Certainty)];

    /// Hosts and paths of requests, and the limits they meet.
    const REQUESTS: &[(Option<&str>, Option<&str>, Met<'_>)] = &[
        (Some("other.org"), Some("/"), &[("all", Known)]),
        (Some("example.com"), Some("/"), &[("all", Known)]),
        (Some("api.example.com"), Some("/"), &[("all", Known), ("api", Known), ("sub", Known)]),
        (Some("other.org"), Some("/people/7"), &[("all", Known), ("users", Known)]),
        (
            Some("api.example.org"),
            Some("/users/7"),
            &[("all", Known), ("api-users", Known), ("users", Known)],
        ),
        (
            Some("a.example.com"),
            Some("/users/7"),
            &[("all", Known), ("sub", Known), ("users", Known)],
        ),
        (
            Some("api.example.org"),
            None,
            &[("all", Known), ("api-users", Assumed), ("users", Assumed)],
        ),
        (None, Some("/a"), &[("all", Known), ("api", Assumed), ("sub", Assumed)]),
        (
            None,
            Some("/users/7"),
            &[
                ("all", Known),
                ("api", Assumed),
                ("api-users", Assumed),
                ("sub", Assumed),
                ("users", Known),
            ],
        ),
        (
            None,
            None,
            &[
                ("all", Known),
                ("api", Assumed),
                ("api-users", Assumed),
                ("sub", Assumed),
                ("users", Assumed),
            ],
        ),
    ];

    #[test]
    fn a_request_meets_the_limits_for_its_host_and_path_and_those_it_hides_from() {
        let mut routes = Routes::new();
        for (name, hosts, paths) in LIMITS {
            let hosts =
                hosts.iter().map(|text| HostPattern::parse(text).unwrap()).collect::<Vec<_>>();
            let paths = paths.iter().map(|text| Pattern::parse(text).unwrap()).collect::<Vec<_>>();
            routes.insert(&hosts, &paths, *name);
        }
        for (host, path, expected) in REQUESTS {
            let canonical = path.and_then(CanonicalPath::of);
            let mut met = Vec::new();
            routes.for_each(*host, canonical.as_ref(), &mut |name, certainty| {
                met.push((*name, certainty));
            });
            met.sort_unstable_by_key(|(name, _)| *name);
            assert_eq!(met, *expected, "{host:?} {path:?}");
        }
    }
}
