use redis::{ErrorKind, RedisError};

use super::address::Address;
use crate::backend::{BackendError, Fault};

/// A failed call.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: BackendError,
    /// True if other calls on the same connection would fail as well.
    pub(super) is_fatal: bool,
}

impl Failure {
    /// The failure of a call to `address`.
    pub(super) fn of(address: &Address, error: &RedisError) -> Self {
        match error.code() {
            Some(code) => Self::refused(address, code, error.detail().unwrap_or_default()),
            None if error.kind() == ErrorKind::Io => Self { error: lost(address), is_fatal: true },
            None => Self {
                error: BackendError::new(
                    Fault::Nonsense,
                    format!("{address} does not speak the Redis protocol: {error}"),
                ),
                is_fatal: true,
            },
        }
    }

    /// The failure of a call that `address` answered with an error.
    fn refused(address: &Address, code: &str, detail: &str) -> Self {
        let (code, detail) = in_script(code, detail);
        let (fault, why) = match code {
            "READONLY" => (
                Fault::Unready,
                "is a read-only replica: name its master, or let Sentinel find it".to_owned(),
            ),
            "LOADING" => (Fault::Unready, "is still loading its data".to_owned()),
            "MASTERDOWN" => (Fault::Unready, "is a replica that has lost its master".to_owned()),
            "CLUSTERDOWN" => (Fault::Unready, format!("has no working Cluster: {detail}")),
            "OOM" => (Fault::Unready, "is out of memory: raise its `maxmemory`".to_owned()),
            "MISCONF" => (
                Fault::Unready,
                format!("accepts no writes because it cannot persist them: {detail}"),
            ),
            "NOREPLICAS" => {
                (Fault::Unready, "has too few replicas for its `min-replicas-to-write`".to_owned())
            }
            "BUSY" => (Fault::Unready, "is busy with another script".to_owned()),
            "NOAUTH" => (Fault::Refused, "requires a password: set one".to_owned()),
            "WRONGPASS" => (Fault::Refused, "does not accept this user and password".to_owned()),
            "NOPERM" => (Fault::Refused, format!("refuses us: {detail}")),
            _ if detail.starts_with("The user executing the script can't") => {
                (Fault::Refused, format!("refuses us: {detail}"))
            }
            _ if detail.contains("max number of clients") => {
                (Fault::Unready, "has too many clients: raise its `maxclients`".to_owned())
            }
            _ if detail.contains("AUTH") && detail.contains("without any password") => {
                (Fault::Refused, "has no password set, but one is given".to_owned())
            }
            _ if detail.contains("cluster support disabled") => (
                Fault::Misconfigured,
                "is not a node of a Cluster: begin the URL with redis://".to_owned(),
            ),
            // Affects one key only.
            "WRONGTYPE" => {
                let text = format!(
                    "{address} has a value of another type under a key of this prefix: reset the \
                     caller to delete it, and let no other program use this prefix"
                );
                let error = BackendError::new(Fault::Corrupt, text);
                return Self { error, is_fatal: false };
            }
            _ => {
                let error = format!("{address} answered {code} {}", without_arguments(detail));
                return Self { error: BackendError::new(Fault::Nonsense, error), is_fatal: false };
            }
        };
        Self { error: BackendError::new(fault, format!("{address} {why}")), is_fatal: true }
    }
}

/// The connection to `address` was lost before the reply.
fn lost(address: &Address) -> BackendError {
    let text = format!("{address} cannot be reached: the connection was lost");
    BackendError::unanswered(Fault::Unreachable, text)
}

/// An error reply without the arguments it quotes: `AUTH` has a password.
fn without_arguments(detail: &str) -> &str {
    detail.split(", with args beginning with").next().unwrap_or_default()
}

/// `address` cannot be reached.
pub(super) fn unreachable_because(address: &Address, why: &dyn std::fmt::Display) -> BackendError {
    BackendError::new(Fault::Unreachable, format!("{address} cannot be reached: {why}"))
}

/// The error of a command inside a script. Before version 7 it is wrapped: `ERR Error running
/// script (call to f_…): @user_script:1: -OOM command not allowed …`.
fn in_script<'a>(code: &'a str, detail: &'a str) -> (&'a str, &'a str) {
    let inner = || {
        let (_, inner) = detail.strip_prefix("Error running script")?.split_once(": -")?;
        inner.split_once(' ')
    };
    inner().filter(|_| code == "ERR").unwrap_or((code, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str, detail: &str) -> Failure {
        Failure::refused(&Address::Tcp("a".into(), 1), code, detail)
    }

    #[test]
    fn an_error_inside_a_script_is_the_same_in_every_version() {
        let new =
            "command not allowed when used memory > 'maxmemory'. script: f_1, on @user_script:1.";
        let old = "Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command \
                   not allowed when used memory > 'maxmemory'.";
        let (new, old) = (refused("OOM", new), refused("ERR", old));
        assert_eq!(new.error, old.error);
        assert_eq!(new.error.to_string(), "a:1 is out of memory: raise its `maxmemory`");
        assert!(new.is_fatal && old.is_fatal);
    }

    #[test]
    fn an_error_of_one_call_is_not_one_of_redis() {
        let odd = refused("WRONGTYPE", "Operation against a key holding the wrong kind of value");
        assert!(!odd.is_fatal);
        assert_eq!(odd.error.fault(), Fault::Corrupt);
    }
}
