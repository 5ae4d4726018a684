use std::error::Error;
use std::path::PathBuf;

use clap::Args;
use spillgate_policy::{Domain, Gate, Node, NodeQuota};
use spillgate_proxy::Proxy;

use super::print;
use crate::settings::{Flags, Listen, Source, StoreSettings, TlsFiles};
use crate::{AnyStore, lifecycle};

/// Validate a configuration file
///
/// Prints listeners and limits if the file is valid; otherwise all problems, each with its line
/// and what would be right, and the exit code is 1. Nothing is started or changed.
///
///   spillgate check-config spillgate.toml
///   spillgate check-config spillgate.toml && systemctl reload spillgate
///
/// Flags and environment variables have the same effect as for serve:
///
///   SPILLGATE_TOKEN_FILE=token spillgate check-config spillgate.toml --http 0.0.0.0:8390
///
/// With --connect, also connect to the shared store:
///
///   spillgate check-config spillgate.toml --connect
///
/// A directory of envoyproxy/ratelimit files, or one of them, can be validated alone:
///
///   spillgate check-config /etc/ratelimit
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct CheckConfig {
    /// Configuration file, or envoyproxy/ratelimit files
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Connect to the shared store, and check that it can be used
    #[arg(long)]
    connect: bool,
    #[command(flatten)]
    flags: Flags<false>,
}

const HEADER: [&str; 6] = ["limit", "quota", "algorithm", "per", "mode", "capacity"];

impl CheckConfig {
    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn run(self) -> Result<(), Box<dyn Error>> {
        let name = self.file.display().to_string();
        let source = Source::file_or_rules(self.file, self.flags);
        let (config, policy) = source.load(None)?;
        let domains: String = config.additions.envoy.domains.iter().map(domain_line).collect();
        let configured: Vec<_> = policy.configured_limits().map(str::to_owned).collect();
        let settings = config.settings;
        settings.tls().as_ref().map(TlsFiles::load).transpose()?;
        settings.proxy.as_ref().map(|proxy| Proxy::new(proxy.runtime())).transpose()?;
        if let Some(store) = &settings.store {
            store.options()?.check()?;
        }
        let store = match &settings.store {
            Some(store) if self.connect => {
                // Whether it can be reached is the question.
                let store = StoreSettings { start_in_outage: false, ..store.clone() };
                AnyStore::Shared(lifecycle::connect(&store).await?)
            }
            _ => AnyStore::default(),
        };
        let gate = Gate::with_store(policy, store)?;
        let mut limits = gate.limits();
        if let Some(store) = gate.store().shared() {
            let joined = lifecycle::join(store).await;
            store.shutdown().await;
            joined?;
        }
        if source.is_rules() {
            limits.retain(|limit| configured.contains(&limit.name));
        }
        let mut rows = vec![HEADER.map(str::to_owned)];
        rows.extend(limits.into_iter().map(|limit| {
            let mode = match limit.mode {
                spillgate_policy::Mode::Shadow => "shadow",
                _ => "enforce",
            };
            let by_name = if limit.by_name { ", by name" } else { "" };
            let (algorithm, mode) = (limit.algorithm.to_owned(), format!("{mode}{by_name}"));
            [limit.name, limit.quota, algorithm, limit.per, mode, limit.capacity.to_string()]
        }));
        if source.is_rules() {
            // Where a server would listen is not in question.
            return print(&format!("{name}: OK\n{domains}\n{}", table(&rows)));
        }
        let listeners = settings.listeners().into_iter();
        let listeners =
            listeners.filter(|(name, listen)| *name != "admin" || *listen != Listen::Off);
        let listens: String =
            listeners.map(|(name, listen)| format!("  {name:6} {listen}\n")).collect();
        let proxy = settings.proxy.map_or_else(String::new, |proxy| {
            format!("  proxy  {} to {}\n", proxy.listen, proxy.runtime().upstream_list())
        });
        let store = settings.store.map_or_else(String::new, |store| {
            let tried = if self.connect { ", connected" } else { "" };
            format!("  store  {}{tried}\n", store.place())
        });
        print(&format!("{name}: OK\n{listens}{proxy}{store}{domains}\n{}", table(&rows)))
    }
}

/// `  domain edge: 5 rules, 2 of them unlimited`.
fn domain_line(domain: &Domain) -> String {
    let (rules, unlimited) = counted(&domain.nodes);
    let plural = if rules == 1 { "" } else { "s" };
    let unlimited = match unlimited {
        0 => String::new(),
        count => format!(", {count} of them unlimited"),
    };
    format!("  domain {}: {rules} rule{plural}{unlimited}\n", domain.name)
}

/// How many nodes have a limit, and how many of these limit nothing.
fn counted(nodes: &[Node]) -> (usize, usize) {
    nodes.iter().fold((0, 0), |(rules, unlimited), node| {
        let below = counted(&node.nodes);
        let quota = node.limit.as_ref().map(|limit| limit.quota);
        let is_unlimited = usize::from(quota == Some(NodeQuota::Unlimited));
        (rules + below.0 + usize::from(quota.is_some()), unlimited + below.1 + is_unlimited)
    })
}

fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
