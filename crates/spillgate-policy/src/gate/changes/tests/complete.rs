//! Every key that a policy file can have is compared: none can be forgotten.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::{DeTable, DeValue};

use super::*;

/// Every key of the schema, as another test makes sure.
const COMPLETE: &str = include_str!("../../../config/file/complete.toml");

/// A text of that file, what takes its place, and the key under which the change is reported:
/// after `+` a new limit, after `=` one in both.
const MUTATIONS: &[(&str, &str, &str)] = &[
    ("\"192.168.1.0/24\"", "\"192.168.2.0/24\"", "allow"),
    ("entry = \"198.51.100.7\"", "entry = \"198.51.100.8\"", "allow"),
    ("expires = 2027-01-01T00:00:00Z, comment = \"load test\"", "comment = \"load test\"", "allow"),
    ("\"load test\"", "\"load tests\"", "allow"),
    ("\"key:leaked-123\"", "\"key:leaked-124\"", "block"),
    ("entry = \"203.0.113.50\"", "entry = \"203.0.113.51\"", "block"),
    ("expires = 2027-01-01T00:00:00Z, comment = \"scraper\"", "comment = \"scraper\"", "block"),
    ("\"scraper\"", "\"scrapers\"", "block"),
    (
        "order = [\"api-key\", \"user\", \"ip\"]",
        "order = [\"user\", \"api-key\", \"ip\"]",
        "identity.order",
    ),
    ("header = \"x-api-key\"", "header = \"x-other-key\"", "identity.api-key"),
    ("[\"k1\", \"k2\", \"partner-7\"]", "[\"k1\", \"k3\", \"partner-7\"]", "identity.api-key"),
    ("header = \"x-user-id\"", "header = \"x-user\"", "identity.user"),
    ("accept = \"trusted-proxies\"", "accept = \"any\"", "identity.user"),
    ("tier-header = \"x-tier\"", "tier-header = \"x-plan\"", "identity.tier-header"),
    ("\"10.0.0.0/8\"", "\"10.0.0.0/9\"", "identity.trusted-proxies"),
    ("[\"x-forwarded-for\"]", "[\"forwarded\"]", "identity.client-ip"),
    ("ipv4-prefix = 32", "ipv4-prefix = 24", "identity.ipv4-prefix"),
    ("ipv6-prefix = 64", "ipv6-prefix = 56", "identity.ipv6-prefix"),
    ("ignore-case = \"patterns\"", "ignore-case = \"never\"", "path-spelling.ignore-case"),
    ("strip-parameters = true", "strip-parameters = false", "path-spelling.strip-parameters"),
    ("trim-spaces = true", "trim-spaces = false", "path-spelling.trim-spaces"),
    ("encoded-slash = \"both\"", "encoded-slash = \"text\"", "path-spelling.encoded-slash"),
    ("name = \"messages\"", "name = \"chats\"", "+chats"),
    ("/public/{*rest}", "/open/{*rest}", "=public match.path"),
    ("[\"GET\", \"POST\"]", "[\"GET\"]", "=public match.method"),
    ("[\"example.com\", \"*.example.com\"]", "[\"example.com\"]", "=login match.host"),
    ("\"x-beta\" = \"*\"", "\"x-beta\" = \"1\"", "=tokens match.header"),
    ("domain = \"edge\"", "domain = \"mesh\"", "=per-address match.domain"),
    (
        "{ remote_address = \"*\" }",
        "{ remote_address = \"10.*\" }",
        "=per-address match.descriptor",
    ),
    ("per = \"descriptor:remote_address\"", "per = \"global\"", "=per-address per"),
    ("by-name = true ", "by-name = false ", "=messages by-name"),
    ("per = [\"caller\", \"path:model\"]", "per = \"caller\"", "=tokens per"),
    ("quota = \"10/s burst 20\"", "quota = \"10/s burst 30\"", "=public quota"),
    ("algorithm = \"token-bucket\"", "algorithm = \"interval-bucket\"", "=public algorithm"),
    ("start = \"full\"", "start = \"empty\"", "=public start"),
    ("capacity = 100_000", "capacity = 1000", "=public capacity"),
    ("when-full = \"protect\"", "when-full = \"deny\"", "=public when-full"),
    ("max-debt = 5000", "max-debt = 4000", "=public max-debt"),
    ("sharing = \"leased\"", "sharing = \"strict\"", "=public sharing"),
    ("outage = \"local\"", "outage = \"closed\"", "=public outage"),
    (
        "mode = \"enforce\"\n\n[[limit.override]]",
        "mode = \"shadow\"\n\n[[limit.override]]",
        "=public mode",
    ),
    ("caller = \"api-key:partner-7\"", "caller = \"api-key:k1\"", "=public override"),
    ("quota = \"1000/s\"", "quota = \"2000/s\"", "=public override"),
    (
        "expires = 2027-01-01T00:00:00Z\ncomment = \"until",
        "expires = 2028-01-01T00:00:00Z\ncomment = \"until",
        "=public override",
    ),
    ("\"until the new contract\"", "\"for ever\"", "=public override"),
    ("status = [401, \"403\"]", "status = [401]", "=login settle"),
    ("strikes = 5", "strikes = 6", "=login ban.strikes"),
    ("window = \"10m\"", "window = \"11m\"", "=login ban.window"),
    ("\nduration = \"10m\"", "\nduration = \"11m\"", "=login ban.duration"),
    ("factor = 2", "factor = 3", "=login ban.factor"),
    ("max = \"1d\"", "max = \"2d\"", "=login ban.max"),
    ("decay = \"1d\"", "decay = \"2d\"", "=login ban.decay"),
    ("jitter = 0.1", "jitter = 0.2", "=login ban.jitter"),
    ("on = [\"denied\", 401, \"403\"]", "on = [\"denied\", 401]", "=login ban.on"),
    ("refuse = \"offence\"", "refuse = \"next\"", "=login ban.refuse"),
    ("mode = \"enforce\"\nstatus = 403", "mode = \"shadow\"\nstatus = 403", "=login ban.mode"),
    ("\nstatus = 403", "\nstatus = 429", "=login ban.status"),
    ("header = \"x-tokens-wanted\"", "header = \"x-wanted\"", "=tokens cost"),
    ("default = 500", "default = 400", "=tokens cost"),
    ("header = \"x-tokens-used\"", "header = \"x-used\"", "=tokens settle"),
    ("{ limit = 5, ttl", "{ limit = 6, ttl", "=uploads quota"),
    ("ttl = \"30s\"", "ttl = \"20s\"", "=uploads ttl"),
    ("concurrent = 50", "concurrent = 40", "=uploads override"),
    ("min = 10, max = 500", "min = 11, max = 500", "=service adaptive"),
    ("max = 500, start", "max = 400, start", "=service adaptive"),
    ("start = 50", "start = 60", "=service adaptive"),
    ("controller = \"auto\", ", "controller = \"aimd\", ", "=service adaptive"),
    ("signal = \"cpu\"", "signal = \"process-cpu\"", "=fair adaptive"),
    ("target = 0.8", "target = 0.7", "=fair adaptive"),
    ("threshold = 0.95", "threshold = 0.9", "=payments adaptive"),
    ("aggression = 1 }", "aggression = 2 }", "=payments adaptive"),
    ("limit = \"login\"\nip", "limit = \"per-ip\"\nip", "=login override"),
    ("ip = \"192.0.2.7\"", "ip = \"192.0.2.8\"", "=login override"),
    ("quota = \"50/min\"", "quota = \"60/min\"", "=login override"),
    ("2027-01-01T01:00:00+01:00", "2027-01-01T02:00:00+01:00", "=login override"),
    ("\"office\"", "\"offices\"", "=login override"),
    ("caller = \"user:42\"", "caller = \"user:43\"", "=uploads override"),
    ("concurrent = 10", "concurrent = 9", "=uploads override"),
    ("callers = [\"api-key:k1\", \"user:42\"]", "callers = [\"api-key:k1\"]", "tier.gold.callers"),
    ("public = \"100/s burst 200\"", "public = \"100/s burst 300\"", "=public tier.gold"),
    ("uploads = 20", "uploads = 30", "=uploads tier.gold"),
    ("default = \"normal\"", "default = \"low\"", "priority.default"),
    ("header = \"x-priority\"", "header = \"x-class\"", "priority.header"),
    ("tier = { gold = \"high\" }", "tier = { gold = \"low\" }", "priority.tier.gold"),
    ("class = \"critical\"", "class = \"high\"", "priority.rule.1"),
    ("path = \"/pay\", method = \"POST\"", "path = \"/buy\", method = \"POST\"", "priority.rule.1"),
    (
        "method = \"POST\", host = \"example.com\"",
        "method = \"PUT\", host = \"example.com\"",
        "priority.rule.1",
    ),
    ("host = \"example.com\" }", "host = \"example.org\" }", "priority.rule.1"),
    ("\"x-prefetch\" = \"*\"", "\"x-prefetch\" = \"1\"", "priority.rule.2"),
];

/// For the row of an override that is moved from one limit to another.
const PER_IP: &str =
    "[[limit]]\nname = 'per-ip'\nmatch = { path = '/ip' }\nper = 'ip'\nquota = '5/min'\n";

/// Every value of a file by the path to it. Lists of tables do not show in the path.
fn leaves(value: &DeValue<'_>, path: &str, found: &mut BTreeMap<String, Vec<String>>) {
    match value {
        DeValue::Table(table) => {
            for (key, value) in table {
                leaves(value.get_ref(), &format!("{path}/{}", key.get_ref()), found);
            }
        }
        DeValue::Array(values) if values.iter().any(|value| value.get_ref().is_table()) => {
            values.iter().for_each(|value| leaves(value.get_ref(), path, found));
        }
        leaf => found.entry(path.to_owned()).or_default().push(text(leaf)),
    }
}

fn text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Array(values) => {
            values.iter().map(|value| text(value.get_ref())).collect::<Vec<_>>().join(",")
        }
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(it) => it.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        DeValue::Table(_) => String::new(),
    }
}

fn leaves_of(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    leaves(&DeValue::Table(DeTable::parse(text).unwrap().into_inner()), "", &mut found);
    found
}

/// Everything that was reported, written like in the table.
fn reported(changes: &Changes) -> Vec<String> {
    let limits = changes.changed.iter().map(|it| format!("={} {}", it.limit, it.key));
    let lists = changes.lists.iter().map(|change| change.list.name().to_owned());
    let added = changes.added.iter().map(|limit| format!("+{limit}"));
    let others = changes.others.iter().map(|change| change.key.clone());
    limits.chain(lists).chain(added).chain(others).collect()
}

#[test]
fn every_key_that_a_file_can_have_is_reported_if_it_changes() {
    let complete =
        COMPLETE.replace("# Settings of a server, if", &format!("{PER_IP}# Settings, if"));
    let old = Policy::from_toml(&complete).unwrap();
    let before = leaves_of(&complete);
    let mut touched = BTreeSet::new();
    for (text, other, key) in MUTATIONS {
        assert!(complete.contains(text), "{text:?} is not in the file");
        let mutated = complete.replacen(text, other, 1);
        let after = leaves_of(&mutated);
        let differs = |path: &&String| before.get(*path) != after.get(*path);
        touched.extend(before.keys().chain(after.keys()).filter(differs).cloned());
        let new = Policy::from_toml(&mutated).unwrap_or_else(|error| panic!("{text}: {error}"));
        let reported = reported(&Changes::between(&old, &new));
        assert!(reported.iter().any(|it| it == key), "{text} → {other}: {key}, not {reported:?}");
    }
    let all: BTreeSet<_> = before.into_keys().collect();
    let forgotten: Vec<_> = all.difference(&touched).collect();
    assert!(forgotten.is_empty(), "add a row for each of {forgotten:#?}");
}
