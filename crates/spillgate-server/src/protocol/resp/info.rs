//! `INFO`: about the server.

use std::fmt::Write;

use spillgate_policy::store::Store;

use super::Endpoint;
use super::codec::{Args, Writer};

/// The Redis version that clients see. Some derive features from it.
pub(super) const REDIS_VERSION: &str = "7.2.0";

type Section<S> = fn(&Endpoint<S>, &mut String) -> std::fmt::Result;

/// `INFO [section …]`: unknown sections are empty, as in Redis.
pub(super) fn run<S: Store>(endpoint: &Endpoint<S>, args: Args<'_>, out: &mut Writer) {
    let sections: [(&str, Section<S>); 5] = [
        ("Server", server),
        ("Clients", clients),
        ("Persistence", |_, text| text.write_str("loading:0\r\n")),
        ("Stats", stats),
        ("Replication", |_, text| text.write_str("role:master\r\nconnected_slaves:0\r\n")),
    ];
    let asked = args.skip(1);
    let is_asked = |name: &str| {
        let names = [name, "all", "default", "everything"];
        let is_named = |arg: &[u8]| names.iter().any(|n| arg.eq_ignore_ascii_case(n.as_bytes()));
        asked.is_empty() || asked.iter().any(is_named)
    };
    let mut text = String::new();
    for (name, write) in sections.iter().filter(|(name, _)| is_asked(name)) {
        let gap = if text.is_empty() { "" } else { "\r\n" };
        // Writing to memory does not fail.
        let _ = write!(text, "{gap}# {name}\r\n");
        let _ = write(endpoint, &mut text);
    }
    out.text(&text);
}

fn server<S: Store>(endpoint: &Endpoint<S>, text: &mut String) -> std::fmt::Result {
    let version = env!("CARGO_PKG_VERSION");
    let uptime = endpoint.started.elapsed().as_secs();
    let pid = std::process::id();
    write!(
        text,
        "redis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\n\
         spillgate_version:{version}\r\nprocess_id:{pid}\r\nuptime_in_seconds:{uptime}\r\n"
    )
}

fn clients<S: Store>(endpoint: &Endpoint<S>, text: &mut String) -> std::fmt::Result {
    let (open, buffered) = (endpoint.stats.counts().open, endpoint.buffered());
    write!(text, "connected_clients:{open}\r\nmem_clients_normal:{buffered}\r\n")
}

fn stats<S: Store>(endpoint: &Endpoint<S>, text: &mut String) -> std::fmt::Result {
    let counts = endpoint.stats.counts();
    write!(
        text,
        "total_connections_received:{}\r\ntotal_commands_processed:{}\r\n\
         total_error_replies:{}\r\nprotocol_errors:{}\r\nforeign_connections:{}\r\n\
         evicted_clients:{}\r\ncalls_allowed:{}\r\ncalls_limited:{}\r\n",
        counts.accepted,
        counts.commands,
        counts.errors,
        counts.protocol_errors,
        counts.foreign,
        counts.evicted,
        counts.allowed,
        counts.limited,
    )
}
