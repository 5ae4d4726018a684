use super::address::Address;
use crate::backend::{BackendError, Fault, Result};

/// The oldest supported version of Redis.
const OLDEST: (u32, u32) = (6, 2);

/// The reply to `INFO`.
#[derive(Debug)]
pub(super) struct Info<'a>(pub(super) &'a str);

impl<'a> Info<'a> {
    /// Why this server cannot keep limits, and what to change. See also
    /// [`eviction`](Self::eviction).
    pub(super) fn check(&self, address: &Address, in_cluster: bool) -> Result<()> {
        let refuse = |fault, why: String| Err(BackendError::new(fault, format!("{address} {why}")));
        if self.is("loading", "1") {
            return refuse(Fault::Unready, "is still loading its data".to_owned());
        }
        if let Some(version) = self.too_old() {
            let why = format!("is Redis {version}: 6.2 or later is needed, or any Valkey");
            return refuse(Fault::Misconfigured, why);
        }
        match (in_cluster, self.is("cluster_enabled", "1")) {
            (false, true) => {
                let why = "is a node of a Cluster: begin the URL with redis+cluster://".to_owned();
                return refuse(Fault::Misconfigured, why);
            }
            (true, false) => {
                let why = "is not a node of a Cluster: begin the URL with redis://".to_owned();
                return refuse(Fault::Misconfigured, why);
            }
            _ => {}
        }
        if self.is("role", "slave") {
            let why = "is a read-only replica: name its master, or let Sentinel find it".to_owned();
            return refuse(Fault::Unready, why);
        }
        Ok(())
    }

    /// The policy by which it may evict keys.
    pub(super) fn eviction(&self) -> Option<&'a str> {
        let is_bounded = self.field("maxmemory").is_some_and(|bytes| bytes != "0");
        self.field("maxmemory_policy").filter(|policy| is_bounded && *policy != "noeviction")
    }

    /// The version, if it is too old.
    fn too_old(&self) -> Option<&'a str> {
        if self.is("server_name", "valkey") {
            return None;
        }
        let version = self.field("redis_version")?;
        let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
        let known = (numbers.next()?, numbers.next()?);
        (known < OLDEST).then_some(version)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.field(name) == Some(value)
    }

    fn field(&self, name: &str) -> Option<&'a str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, in_cluster: bool) -> Result<(), String> {
        let address = Address::Tcp("a".into(), 1);
        Info(text).check(&address, in_cluster).map_err(|error| error.to_string())
    }

    #[test]
    fn servers_that_can_keep_limits_are_accepted() {
        for good in [
            "redis_version:6.2.0\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\nrole:master\r\n",
            "redis_version:7.0.15\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\nloading:0\r\n",
            "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n",
            "redis_version:255.255.255\r\n",
        ] {
            assert_eq!(check(good, false), Ok(()));
        }
        assert_eq!(check("redis_version:7.0.0\r\ncluster_enabled:1\r\n", true), Ok(()));
    }

    #[test]
    fn what_others_would_have_to_change_is_said() {
        for (text, in_cluster, why) in [
            ("redis_version:6.0.16\r\n", false, "is Redis 6.0.16: 6.2 or later"),
            ("redis_version:5.0.7\r\n", false, "is Redis 5.0.7: 6.2 or later"),
            ("loading:1\r\n", false, "still loading"),
            ("role:slave\r\n", false, "read-only replica"),
            ("cluster_enabled:1\r\n", false, "redis+cluster://"),
            ("cluster_enabled:0\r\n", true, "redis://"),
        ] {
            let text = check(text, in_cluster).unwrap_err();
            assert!(text.starts_with("a:1 ") && text.contains(why), "{text}");
        }
    }

    #[test]
    fn keys_may_be_dropped_if_memory_is_bounded_and_the_policy_says_so() {
        for (text, policy) in [
            ("maxmemory:1\r\nmaxmemory_policy:volatile-ttl\r\n", Some("volatile-ttl")),
            ("maxmemory:0\r\nmaxmemory_policy:volatile-ttl\r\n", None),
            ("maxmemory:1\r\nmaxmemory_policy:noeviction\r\n", None),
            ("redis_version:7.0.0\r\n", None),
        ] {
            assert_eq!(Info(text).eviction(), policy, "{text}");
        }
    }
}
