//! From tables to a domain with its tree of descriptors.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use spillgate::{AlgorithmKind, Quota, Start, Timestamp};
use spillgate_policy::{Domain, Metadata, Node, NodeLimit, NodeMode, NodeQuota};

use super::metadata::{self, Wrong};
use super::problems::Report;
use super::table::Table;
use super::yaml::{Kind, Value, read};
use super::{Problems, unit};

/// Maximum number of descriptors per file, entries of `replaces` and `metadata` included. Aliases
/// can repeat other aliases, so a short text could expand beyond any memory.
const MOST: usize = 100_000;

const DEEPEST: usize = 32;

const OF_FILE: [&str; 2] = ["domain", "descriptors"];
const OF_DESCRIPTOR: [&str; 10] = [
    "key",
    "value",
    "rate_limit",
    "descriptors",
    "shadow_mode",
    "quota_mode",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
];
const OF_RATE_LIMIT: [&str; 5] = ["unit", "requests_per_unit", "unlimited", "name", "replaces"];

/// Parses the text of a file. The error lists all problems, each with the file's name and a line.
pub fn parse(name: &str, text: &str, algorithm: AlgorithmKind) -> Result<Domain, Problems> {
    parse_file(name, text, algorithm).map(|file| file.domain)
}

#[derive(Debug)]
pub(super) struct File {
    pub(super) domain: Domain,
    pub(super) lines: Vec<usize>,
    /// True if it asks for metrics per value, which do not exist.
    pub(super) wants_values: bool,
}

pub(super) fn parse_file(
    name: &str,
    text: &str,
    algorithm: AlgorithmKind,
) -> Result<File, Problems> {
    let mut report = Report::new(name);
    let root = match read(text) {
        Ok(Some(root)) => Some(root),
        Ok(None) => {
            report.note(1, "the file is empty; write domain: and descriptors:");
            None
        }
        Err(unreadable) => {
            report.note(unreadable.line, unreadable.why);
            None
        }
    };
    let mut reader = Reader { report, algorithm, left: MOST, wants_values: false };
    let domain = root.and_then(|root| reader.domain(&root));
    let wants_values = reader.wants_values;
    reader.report.end(domain.map(|(domain, lines)| File { domain, lines, wants_values }))
}

pub(super) fn twice(node: &Node, first: impl fmt::Display) -> String {
    let value_too = if node.value.is_some() { " and the same value" } else { "" };
    format!("the descriptor has the same key{value_too} as that of {first}; keep one")
}

struct Reader<'f> {
    report: Report<'f>,
    algorithm: AlgorithmKind,
    /// Descriptors left of the maximum.
    left: usize,
    wants_values: bool,
}

impl Reader<'_> {
    fn domain(&mut self, root: &Value) -> Option<(Domain, Vec<usize>)> {
        let table = Table::of(root, "the file", &OF_FILE, &mut self.report)?;
        let name = table.name("domain", "domain", &mut self.report).to_owned();
        let (nodes, lines) = self.nodes(table, 1).into_iter().unzip();
        Some((Domain { name, nodes }, lines))
    }

    /// The descriptors of one level, with their lines.
    fn nodes(&mut self, parent: Table<'_>, depth: usize) -> Vec<(Node, usize)> {
        let listed = parent.list("descriptors", &mut self.report);
        if depth > DEEPEST && !listed.is_empty() {
            let line = parent.line_of("descriptors");
            self.report.note(line, format_args!("descriptors are nested more than {DEEPEST} deep"));
            return Vec::new();
        }
        let mut seen = HashMap::new();
        let mut nodes = Vec::new();
        for value in listed {
            if !self.may_go_on(value.line) {
                break;
            }
            let Some(node) = self.node(value, depth) else { continue };
            let pair = (node.key.clone(), node.value.clone());
            if let Some(first) = seen.insert(pair, value.line) {
                self.report.note(value.line, twice(&node, format_args!("line {first}")));
            }
            nodes.push((node, value.line));
        }
        nodes
    }

    /// Counts one more, up to the maximum.
    fn may_go_on(&mut self, line: usize) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            self.report.note(line, too_many());
            return false;
        };
        self.left = left;
        true
    }

    fn node(&mut self, value: &Arc<Value>, depth: usize) -> Option<Node> {
        let table = Table::of(value, "a descriptor", &OF_DESCRIPTOR, &mut self.report)?;
        let report = &mut self.report;
        let key = table.name("key", "descriptor's key", report);
        if key.contains('*') {
            let line = table.line_of("key");
            report.note(line, "a \"*\" in a key has no meaning; write it in the value");
        }
        let value = table.text("value", report).filter(|value| !value.is_empty());
        for metric in ["detailed_metric", "value_to_metric"] {
            self.wants_values |= table.is(metric, report);
        }
        let shares_values = table.is("share_threshold", report);
        if shares_values && !value.is_some_and(|value| value.contains('*')) {
            let line = table.line_of("share_threshold");
            report.note(line, "share_threshold is for a value with \"*\" in it; leave it out");
        }
        let mode = match (table.is("quota_mode", report), table.is("shadow_mode", report)) {
            (true, true) => NodeMode::ShadowQuota,
            (true, false) => NodeMode::Quota,
            (false, true) => NodeMode::Shadow,
            (false, false) => NodeMode::Enforce,
        };
        let metadata = self.metadata(table);
        let limit = table.value("rate_limit").and_then(|value| self.rate_limit(value));
        Some(Node {
            key: key.to_owned(),
            value: value.map(str::to_owned),
            limit: limit.map(|limit| NodeLimit { mode, metadata, ..limit }),
            shares_values,
            nodes: self.nodes(table, depth + 1).into_iter().map(|(node, _)| node).collect(),
        })
    }

    fn metadata(&mut self, table: Table<'_>) -> Metadata {
        let Some(value) = table.value("metadata") else { return Metadata::new() };
        if !matches!(value.kind, Kind::Table(_)) {
            let kind = value.name();
            self.report.note(value.line, format_args!("metadata must be a table, and is {kind}"));
        }
        metadata::read(value, &mut self.left).unwrap_or_else(|wrong| {
            match wrong {
                Wrong::TooMuch => self.report.note(value.line, too_many()),
                Wrong::NotFinite(line, text) => {
                    let why = format!("{text} in metadata is not a JSON number; quote it");
                    self.report.note(line, why);
                }
            }
            Metadata::new()
        })
    }

    fn rate_limit(&mut self, value: &Value) -> Option<NodeLimit> {
        let table = Table::of(value, "rate_limit", &OF_RATE_LIMIT, &mut self.report)?;
        let report = &mut self.report;
        let name = table.text("name", report).filter(|name| !name.is_empty());
        let is_unlimited = table.is("unlimited", report);
        let amount = table.number("requests_per_unit", report).unwrap_or(0);
        let unit = table.text("unit", report).filter(|unit| !unit.is_empty());
        let replaces = self.replaces(table, name);
        let quota = match (is_unlimited, unit) {
            (true, None) => Some(NodeQuota::Unlimited),
            (true, Some(_)) => {
                let line = table.line_of("unit");
                self.report.note(line, "what is unlimited has no unit; leave one of them out");
                None
            }
            (false, None) => {
                let names = unit::NAMES;
                self.report.note(table.line, format_args!("rate_limit has no unit; write {names}"));
                None
            }
            (false, Some(unit)) => self.quota(table, amount, unit),
        };
        let name = name.map(str::to_owned);
        Some(NodeLimit { name, replaces, ..NodeLimit::new(quota?) })
    }

    fn quota(&mut self, table: Table<'_>, amount: u32, unit: &str) -> Option<NodeQuota> {
        let Some(period) = unit::named(unit) else {
            let (line, names) = (table.line_of("unit"), unit::NAMES);
            self.report.note(line, format_args!("the unit is {unit:?}; write {names}"));
            return None;
        };
        if amount == 0 {
            return Some(NodeQuota::Closed { period });
        }
        let algorithm = self.algorithm;
        let quota = quota(amount, period).and_then(|quota| {
            algorithm.with_quota(&quota, Start::Full, Timestamp::ZERO).map(|_| quota)
        });
        match quota {
            Ok(quota) => Some(NodeQuota::Counted { quota, algorithm }),
            Err(error) => {
                self.report.note(table.line_of("requests_per_unit"), error);
                None
            }
        }
    }

    fn replaces(&mut self, table: Table<'_>, own: Option<&str>) -> Vec<String> {
        let mut names = Vec::new();
        for value in table.list("replaces", &mut self.report) {
            if !self.may_go_on(value.line) {
                break;
            }
            let entry = Table::of(value, "an entry of replaces", &["name"], &mut self.report);
            let Some(entry) = entry else { continue };
            match entry.text("name", &mut self.report).filter(|name| !name.is_empty()) {
                None => {
                    self.report.note(value.line, "an entry of replaces has no name; name a limit");
                }
                Some(name) if Some(name) == own => {
                    self.report
                        .note(value.line, format_args!("{name:?} replaces itself; leave it out"));
                }
                Some(name) => names.push(name.to_owned()),
            }
        }
        names
    }
}

fn too_many() -> String {
    format!("there are more than {MOST} descriptors")
}

/// So many per period, with a burst of all of them; at most one per nanosecond.
pub(crate) fn quota(amount: u32, period: Duration) -> Result<Quota, spillgate::Error> {
    let most = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    Quota::per(u64::from(amount).min(most), period).build()
}
