use std::error::Error;
use std::path::PathBuf;

use clap::Args;

use crate::lifecycle;
use crate::settings::{Given, Source};

/// Answers over HTTP, the Redis protocol and gRPC
///
/// Without options it listens on loopback with a small example policy, and writes no file:
///
///   spillgate serve
///   curl --json '{"limit":"api","key":"203.0.113.7"}' http://127.0.0.1:8390/v1/check
///   redis-cli -p 6390 CL.THROTTLE user:42 15 30 60
///
/// With a policy of your own, which is taken up anew whenever the file changes, and with
/// what was spent kept over restarts:
///
///   spillgate serve --config spillgate.toml --snapshot /var/lib/spillgate/state
///
/// For other machines, with TLS and a token that they have to give:
///
///   export SPILLGATE_TOKEN=$(openssl rand -hex 32)
///   spillgate serve --http 0.0.0.0:8390 --resp off --tls-certificate cert.pem --tls-key key.pem
///
/// As Envoy's rate-limit service, by files of envoyproxy/ratelimit:
///
///   spillgate serve --envoy-config /etc/ratelimit
///
/// As one of many that share their limits through a Redis or Valkey:
///
///   spillgate serve --config spillgate.toml --store redis://redis.internal:6379
///
/// Everything but --config can also stand in the file, in [server], with the flag's name as
/// key, and what begins with --store in a table of that name; a flag goes before its variable,
/// and both before the file.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Serve {
    /// The file: a policy, and the server's settings in [server]
    #[arg(long, short, env = "SPILLGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: Given,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Box<dyn Error>> {
        lifecycle::run(Source { path: self.config, flags: self.flags, ..Source::default() })
    }
}
