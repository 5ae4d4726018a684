#![allow(rustdoc::broken_intra_doc_links, reason = "help names tables of the file: [server]")]

use std::error::Error;
use std::path::PathBuf;

use clap::Args;

use crate::lifecycle;
use crate::settings::{Flags, LimitQuota, Source};

/// Run a rate-limiting reverse proxy
///
/// Without a policy every client address has the same quota:
///
///   spillgate proxy --to http://127.0.0.1:3000 --limit "10/s burst 20"
///   curl http://127.0.0.1:8080/
///
/// With your own policy, for remote clients, and several upstreams:
///
///   spillgate proxy --policy spillgate.toml --listen 0.0.0.0:80 \
///     --to http://10.0.0.1:3000 --to http://10.0.0.2:3000 --health-check-path /healthz
///
/// Metrics and the API of serve are on 127.0.0.1:8390, unless --http says otherwise.
///
/// Settings can also be in the file: those under "Proxy" in [proxy] under the name of the flag,
/// others as for serve. Precedence: flag, environment variable, file, default.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Proxy {
    /// Configuration file: the policy, and settings in [server], [store] and [proxy]
    #[arg(
        long,
        short,
        visible_alias = "config",
        short_alias = 'c',
        env = "SPILLGATE_CONFIG",
        value_name = "FILE"
    )]
    policy: Option<PathBuf>,
    /// Quota per client address, without a policy [default: 10/s burst 20]
    #[arg(long, value_name = "QUOTA", conflicts_with = "policy")]
    limit: Option<LimitQuota>,
    #[command(flatten)]
    flags: Flags<true>,
}

impl Proxy {
    pub(super) fn run(self) -> Result<(), Box<dyn Error>> {
        lifecycle::run(Source::proxy(self.policy, self.limit, self.flags))
    }
}
