use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{debug, warn};

use crate::Protocol;
use crate::listener::BACKLOG;

/// For files, and for protocols with a low bound of their own.
const RESERVED: u64 = 64 + 256;

const DEFAULT_CONNECTIONS: usize = 10_000;

/// Raises the open-file limit to what the connections of these protocols need, backlog included, as
/// far as the hard limit permits. Returns how many connections each protocol may have.
pub fn raise_nofile_limit<'p>(
    configured: Option<usize>,
    protocols: impl IntoIterator<Item = &'p dyn Protocol>,
) -> usize {
    let factor = protocols.into_iter().map(Protocol::files_per_connection).sum();
    let connections = configured.unwrap_or(DEFAULT_CONNECTIONS);
    let granted = raise(files(connections.saturating_add(BACKLOG), factor));
    max_connections(configured, factor, granted)
}

/// How many connections each protocol may have: as configured, else as many as leave files for
/// everything else. A connection of each protocol needs `factor` files.
fn max_connections(configured: Option<usize>, factor: usize, granted: u64) -> usize {
    let connections = configured.unwrap_or(DEFAULT_CONNECTIONS);
    let needed = files(connections, factor);
    if granted >= needed {
        return connections;
    }
    // Where hardly any may be open, connections have half of them.
    let fit = granted.saturating_sub(RESERVED).max(granted / 2) / factor.max(1) as u64;
    if configured.is_some() {
        warn!(
            "open-file limit {granted} is below the {needed} needed for {connections} connections \
             per protocol; raise it (systemd: LimitNOFILE=, Docker: --ulimit nofile=, shell: \
             ulimit -Hn), or configure at most {fit} connections"
        );
        return connections;
    }
    debug!(needed, granted, fit, "fewer connections, since the open-file limit is low");
    usize::try_from(fit).unwrap_or(connections).clamp(1, connections)
}

/// How many files so many connections of each protocol need.
fn files(connections: usize, factor: usize) -> u64 {
    RESERVED.saturating_add(connections.saturating_mul(factor) as u64)
}

/// Raises the limit to so many files, if the system permits. Returns the limit in force.
fn raise(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // None is no limit.
    let Some(current) = limit.current else { return u64::MAX };
    if current >= wanted {
        return current;
    }
    let most = limit.maximum.map_or(wanted, |most| most.min(wanted)).max(current);
    let raised = Rlimit { current: Some(most), ..limit };
    if setrlimit(Resource::Nofile, raised).is_ok() { most } else { current }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_connections_leave_files_for_everything_else() {
        for (granted, factor, expected) in [
            (u64::MAX, 4, DEFAULT_CONNECTIONS),
            (files(DEFAULT_CONNECTIONS, 2), 2, DEFAULT_CONNECTIONS),
            (4_096, 1, 3_776),
            (4_096, 4, 944),
            (1_024, 2, 352),
            (256, 2, 64),
            (1, 2, 1),
            (4_096, 0, DEFAULT_CONNECTIONS),
        ] {
            let connections = max_connections(None, factor, granted);
            assert_eq!(connections, expected, "{granted} files, {factor} per connection");
        }
    }

    #[test]
    fn a_configured_maximum_stays_although_it_exceeds_the_limit() {
        assert_eq!(max_connections(Some(50_000), 2, 4_096), 50_000);
        assert_eq!(max_connections(Some(10), 2, 4_096), 10);
    }
}
