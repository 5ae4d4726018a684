use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, warn};

use super::listener::BACKLOG;

/// For files, the admin listener and the like, beside clients.
const OTHERS: u64 = 64 + super::listener::ADMIN_PLACES as u64;

/// How many clients each listener has room for unless it is told.
const CLIENTS: usize = 10_000;

/// Lets the process have as many sockets as it may have clients, those who wait to be
/// accepted included, as far as the system does: many shells grant a program 1,024 files, and
/// a thousand times as many if it asks. Tells how many clients each of so many listeners may
/// have.
pub(super) fn make_room(asked: Option<usize>, listeners: usize) -> usize {
    let clients = asked.unwrap_or(CLIENTS);
    let needed = files(clients, listeners);
    let room = raise(files(clients.saturating_add(BACKLOG), listeners));
    if room < needed {
        let fit = room.saturating_sub(OTHERS) / listeners.max(1) as u64;
        match asked {
            Some(_) => warn!(
                "connections = {clients} needs {needed} open files, and the system allows {room}; \
                 raise that limit (LimitNOFILE= of systemd, --ulimit nofile= of Docker, ulimit -Hn \
                 of a shell), or write connections = {fit}"
            ),
            None => debug!(needed, room, "fewer files may be open than there may be clients"),
        }
    }
    clients
}

/// How many files so many clients of each listener need.
fn files(clients: usize, listeners: usize) -> u64 {
    OTHERS.saturating_add(clients.saturating_mul(listeners) as u64)
}

/// Lets so many files be open, if the system does. Tells how many may be.
fn raise(wanted: u64) -> u64 {
    let granted = getrlimit(Resource::Nofile);
    // None is no limit.
    let Some(current) = granted.current else { return u64::MAX };
    if current >= wanted {
        return current;
    }
    let most = granted.maximum.map_or(wanted, |most| most.min(wanted)).max(current);
    let raised = Rlimit { current: Some(most), ..granted };
    if setrlimit(Resource::Nofile, raised).is_ok() { most } else { current }
}
