//! Which limits a request meets, by its host and its path.
//!
//! Finding them costs the same among ten limits and among thousands.

mod host;
mod host_table;
mod path;
mod pattern;
mod segment;
mod spelling;
mod tree;

use self::host_table::HostTable;
use self::tree::PathTree;

pub(crate) use self::host::{HostPattern, canonical_host};
pub(crate) use self::path::CanonicalPath;
pub(crate) use self::pattern::Pattern;
pub(crate) use self::spelling::RequestPath;
pub use self::spelling::{EncodedSlash, IgnoreCase, PathSpelling};

/// Values, such as the indexes of limits, by the hosts and paths they are for.
#[derive(Debug)]
pub(crate) struct Routes<T> {
    any_host: Paths<T>,
    by_host: HostTable<Paths<T>>,
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
        Self { any_host: Paths::default(), by_host: HostTable::default() }
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
    }

    /// Visits the values for a host, if that matters, in canonical form, and for a path, in no
    /// particular order. A path of `None` is one that is not understood: nobody escapes a limit
    /// by that, so it is every path.
    ///
    /// A value is visited again for each other of its patterns that matches.
    pub(crate) fn for_each(
        &self,
        host: Option<&str>,
        path: Option<&CanonicalPath<'_>>,
        visit: &mut impl FnMut(&T),
    ) {
        self.any_host.for_each(path, visit);
        if let Some(host) = host {
            self.by_host.for_each(host, &mut |paths| paths.for_each(path, visit));
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

    fn for_each(&self, path: Option<&CanonicalPath<'_>>, visit: &mut impl FnMut(&T)) {
        self.any_path.iter().for_each(&mut *visit);
        match path {
            Some(path) => self.by_path.for_each(path, visit),
            None => self.whatever_path.iter().for_each(visit),
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
    use super::pattern::tests::{canonical, parse};
    use super::*;

    /// Limits with the hosts and paths they are for.
    const LIMITS: &[(&str, &[&str], &[&str])] = &[
        ("all", &[], &[]),
        ("api", &["api.example.com"], &[]),
        ("sub", &["*.example.com"], &[]),
        ("users", &[], &["/users/{id}", "/people/{id}"]),
        ("api-users", &["api.example.com", "api.example.org"], &["/users/{id}"]),
    ];

    /// Hosts and paths of requests, and the limits they meet.
    const REQUESTS: &[(Option<&str>, Option<&str>, &[&str])] = &[
        (Some("other.org"), Some("/"), &["all"]),
        (Some("example.com"), Some("/"), &["all"]),
        (Some("api.example.com"), Some("/"), &["all", "api", "sub"]),
        (Some("other.org"), Some("/people/7"), &["all", "users"]),
        (Some("api.example.org"), Some("/users/7"), &["all", "api-users", "users"]),
        (Some("a.example.com"), Some("/USERS/7"), &["all", "sub", "users"]),
        (Some("api.example.org"), None, &["all", "api-users", "users"]),
        (None, Some("/users/7"), &["all", "users"]),
        (None, None, &["all", "users"]),
    ];

    #[test]
    fn a_request_meets_the_limits_for_its_host_and_path() {
        let mut routes = Routes::new();
        for (name, hosts, paths) in LIMITS {
            let hosts =
                hosts.iter().map(|text| HostPattern::parse(text).unwrap()).collect::<Vec<_>>();
            let paths = paths.iter().map(|text| parse(text).unwrap()).collect::<Vec<_>>();
            routes.insert(&hosts, &paths, *name);
        }
        for (host, path, expected) in REQUESTS {
            let path = path.map(canonical);
            let mut met = Vec::new();
            routes.for_each(*host, path.as_ref(), &mut |name| met.push(*name));
            met.sort_unstable();
            assert_eq!(met, *expected, "{host:?} {path:?}");
        }
    }
}
