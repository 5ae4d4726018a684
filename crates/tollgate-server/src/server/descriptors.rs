use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::info;

/// For files, listeners and the like, beside clients.
const OTHERS: u64 = 64;

/// Lets the process have as many sockets as it may have clients, those who wait to be
/// accepted included, as far as the system does: many shells grant a program 1,024 files, and
/// a thousand times as many if it asks.
pub(super) fn make_room(clients: usize) {
    let wanted = OTHERS.saturating_add(clients as u64);
    let granted = getrlimit(Resource::Nofile);
    // None is no limit.
    let Some(current) = granted.current.filter(|current| *current < wanted) else { return };
    let most = granted.maximum.map_or(wanted, |most| most.min(wanted));
    let raised = Rlimit { current: Some(most.max(current)), ..granted };
    let is_raised = setrlimit(Resource::Nofile, raised).is_ok();
    if !is_raised || most < wanted {
        let room = if is_raised { most } else { current };
        info!(wanted, room, "fewer files may be open than there may be clients");
    }
}
