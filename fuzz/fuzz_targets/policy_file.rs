//! Any text is a policy, with the settings of a server or without, or is refused with
//! problems that lie inside it. A policy does not differ from itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spillgate_policy::{Changes, Policy, PolicyFile, Settings, Tables};

/// Asks both tables for a value of every type.
fn tables(tables: &mut Tables<'_, '_>) {
    tables.server(settings);
    tables.store(settings);
}

fn settings(server: &mut Settings<'_, '_>) {
    server.text("text", "t");
    server.parsed("http", "127.0.0.1:1", read::<std::net::SocketAddr>);
    server.secret("token", "1", read::<u64>);
    server.several("hosts", "127.0.0.1", read::<std::net::IpAddr>);
    server.number("connections", 1..=1000, 10);
    server.boolean("open");
}

fn read<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fuzz_target!(|text: &str| {
    let both = PolicyFile::from_text(text).decode(tables);
    let both = both.and_then(|(builder, ())| builder.without_limits().build());
    // Beside the settings of a server it may have no limits, since that may add some.
    let lacks_limits = |error: &spillgate_policy::Error| match error.problems() {
        [only] => only.to_string().contains("there are no limits"),
        _ => false,
    };
    assert!(
        both.is_err() || Policy::from_toml(text).err().is_none_or(|error| lacks_limits(&error))
    );
    if let (Ok(one), Ok(other)) = (Policy::from_toml(text), Policy::from_toml(text)) {
        let changes = Changes::between(&one, &other);
        assert!(changes.is_empty(), "{changes:?}");
    }
    let lines = text.split('\n').count();
    for error in [Policy::from_toml(text).err(), both.err()].into_iter().flatten() {
        assert!(!error.problems().is_empty());
        for place in error.problems().iter().filter_map(|problem| problem.place()) {
            assert!((1..=lines).contains(&place.line), "line {} of {lines}", place.line);
        }
    }
});
