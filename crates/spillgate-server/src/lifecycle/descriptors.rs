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
    let room = raise(files(clients.saturating_add(BACKLOG), listeners));
    places(asked, listeners, room)
}

/// How many clients each of so many listeners may have if so many files may be open: as many as
/// were asked for, and else no more than leave files for everything beside them.
fn places(asked: Option<usize>, listeners: usize, room: u64) -> usize {
    let clients = asked.unwrap_or(CLIENTS);
    let needed = files(clients, listeners);
    if room >= needed {
        return clients;
    }
    // Where hardly any may be open, clients have half of them.
    let fit = room.saturating_sub(OTHERS).max(room / 2) / listeners.max(1) as u64;
    if asked.is_some() {
        warn!(
            "connections = {clients} needs {needed} open files, and the system allows {room}; \
             raise that limit (LimitNOFILE= of systemd, --ulimit nofile= of Docker, ulimit -Hn \
             of a shell), or write connections = {fit}"
        );
        return clients;
    }
    debug!(needed, room, fit, "fewer clients may connect, since few files may be open");
    usize::try_from(fit).unwrap_or(clients).clamp(1, clients)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unless_told_clients_leave_files_for_everything_else() {
        for (room, listeners, expected) in [
            (u64::MAX, 4, CLIENTS),
            (files(CLIENTS, 2), 2, CLIENTS),
            (4_096, 1, 3_776),
            (4_096, 4, 944),
            (1_024, 2, 352),
            (256, 2, 64),
            (1, 2, 1),
            (4_096, 0, CLIENTS),
        ] {
            let clients = places(None, listeners, room);
            assert_eq!(clients, expected, "{room} for {listeners}");
        }
    }

    #[test]
    fn whoever_asks_for_more_than_there_are_files_is_believed() {
        assert_eq!(places(Some(50_000), 2, 4_096), 50_000);
        assert_eq!(places(Some(10), 2, 4_096), 10);
    }
}
