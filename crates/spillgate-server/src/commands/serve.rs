#![allow(rustdoc::broken_intra_doc_links, reason = "help names tables of the file: [server]")]

use std::error::Error;
use std::path::PathBuf;

use clap::Args;

use crate::lifecycle;
use crate::settings::{Flags, Source};

/// Run a rate-limit server for HTTP, the Redis protocol and gRPC
///
/// Without options it listens on loopback, uses a small example policy and writes no file:
///
///   spillgate serve
///   curl --json '{"limit":"api","key":"203.0.113.7"}' http://127.0.0.1:8390/v1/check
///   redis-cli -p 6390 CL.THROTTLE user:42 15 30 60
///
/// With your own policy, which is reloaded whenever the file changes, and counters that survive
/// restarts:
///
///   spillgate serve --config spillgate.toml --snapshot /var/lib/spillgate/state
///
/// For remote clients, with TLS and a bearer token:
///
///   export SPILLGATE_TOKEN=$(openssl rand -hex 32)
///   spillgate serve --http 0.0.0.0:8390 --resp off --tls-cert cert.pem --tls-key key.pem
///
/// As Envoy's rate-limit service, with envoyproxy/ratelimit configuration files:
///
///   spillgate serve --envoy-config /etc/ratelimit
///
/// As one of several servers that share their limits through Redis or Valkey:
///
///   spillgate serve --config spillgate.toml --store redis://redis.internal:6379
///
/// Settings can also be in the file: in [server] under the name of the flag, those of --store-* in
/// [store]. Precedence: flag, environment variable, file, default.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Serve {
    /// Configuration file: the policy, and settings in [server] and [store]
    #[arg(long, short, env = "SPILLGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags<false>,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Box<dyn Error>> {
        lifecycle::run(Source::serve(self.config, self.flags))
    }
}
