use std::error::Error;
use std::path::PathBuf;

use clap::Args;

use crate::lifecycle;
use crate::settings::{Given, GivenProxy, LimitQuota, Source};

/// Stands in front of a service, and limits who asks it
///
/// Without a policy every address has the same allowance:
///
///   spillgate proxy --to http://127.0.0.1:3000 --limit "10/s burst 20"
///   curl http://127.0.0.1:8080/
///
/// With a policy of your own, for other machines, in front of several:
///
///   spillgate proxy --policy spillgate.toml --listen 0.0.0.0:80 \
///     --to http://10.0.0.1:3000 --to http://10.0.0.2:3000 --health-path /healthz
///
/// Metrics and the API of serve are beside it, on 127.0.0.1:8390 unless --http says otherwise.
///
/// What stands under "Proxy" can also stand in the file, in a table of that name, with the
/// flag's name as key, everything else as it can for serve; a flag goes before its variable, and
/// both before the file.
#[derive(Args)]
#[command(verbatim_doc_comment, mut_args(Given::proxy_help))]
pub(super) struct Proxy {
    /// The file: a policy, and settings of the server and the proxy
    #[arg(
        long,
        short,
        visible_alias = "config",
        short_alias = 'c',
        env = "SPILLGATE_CONFIG",
        value_name = "FILE"
    )]
    policy: Option<PathBuf>,
    /// What every address may ask, if there is no policy [default: 10/s burst 20]
    #[arg(long, value_name = "QUOTA", conflicts_with = "policy")]
    limit: Option<LimitQuota>,
    #[command(flatten)]
    proxy: GivenProxy,
    #[command(flatten)]
    flags: Given,
}

impl Proxy {
    pub(super) fn run(self) -> Result<(), Box<dyn Error>> {
        let Self { policy, limit, proxy, mut flags } = self;
        flags.proxy = proxy.wanted();
        lifecycle::run(Source { path: policy, limit, flags, fallback: Given::of_proxy() })
    }
}
