use std::fmt;

use http::uri::PathAndQuery;
use prost::Message;
use tonic::Request;
use tonic_prost::ProstCodec;

use super::connection::Client;
use super::messages::{
    Descriptor, Entry, OK, RateLimitRequest, RateLimitResponse, ThrottleRequest, ThrottleResponse,
};
use crate::Result;
use crate::process::{Process, free_port};
use crate::settings::Programs;

/// Who is asked, and by which rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// A token bucket of a policy.
    Policy,
    /// A fixed window of a file in the format of envoyproxy/ratelimit.
    Envoy,
    Throttlecrab,
}

/// A server that runs as long as this lives.
pub struct Running {
    pub process: Process,
    pub port: u16,
}

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/grpc/policy.toml");
const ENVOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/grpc/ratelimit");

impl Contender {
    pub const ALL: [Self; 3] = [Self::Policy, Self::Envoy, Self::Throttlecrab];

    pub fn meaning(self) -> &'static str {
        match self {
            Self::Policy => {
                "`ShouldRateLimit`, one descriptor, a limit of the policy: 30 a minute, burst 16"
            }
            Self::Envoy => "the same by a file of envoyproxy/ratelimit: 30 in an hour of the clock",
            Self::Throttlecrab => "`Throttle`, as it comes: 30 a minute, burst 15",
        }
    }

    /// How many calls for one key pass at once.
    pub fn burst(self) -> usize {
        match self {
            Self::Policy => 16,
            Self::Envoy => 30,
            Self::Throttlecrab => 15,
        }
    }

    /// Starts the server on a free port, and waits until it listens.
    pub fn start(self, programs: &Programs) -> Result<Running> {
        let port = free_port()?;
        let text = port.to_string();
        let address = format!("127.0.0.1:{port}");
        let spillgate = ["--grpc", &address, "--http", "127.0.0.1:0", "--resp", "off"];
        let (path, args): (_, Vec<&str>) = match self {
            Self::Policy => {
                (&programs.spillgate, [&["serve", "--config", POLICY], &spillgate[..]].concat())
            }
            Self::Envoy => (
                &programs.spillgate,
                [&["serve", "--envoy-config", ENVOY], &spillgate[..]].concat(),
            ),
            Self::Throttlecrab => {
                let args = ["--grpc", "--grpc-host", "127.0.0.1", "--grpc-port", &text];
                (&programs.throttlecrab, [&args[..], &["--log-level", "error"]].concat())
            }
        };
        let process = Process::start(path, &args)?.once_it_listens(path, &[port])?;
        Ok(Running { process, port })
    }

    /// Asks once, and tells whether it has passed.
    pub async fn ask(self, client: &mut Client, key: &str) -> Result<bool> {
        match self {
            Self::Policy | Self::Envoy => {
                let entry = Entry { key: "key".to_owned(), value: key.to_owned() };
                let request = RateLimitRequest {
                    domain: "bench".to_owned(),
                    descriptors: vec![Descriptor { entries: vec![entry] }],
                    hits_addend: 1,
                };
                let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
                let response: RateLimitResponse = call(client, path, request).await?;
                Ok(response.overall_code == OK)
            }
            Self::Throttlecrab => {
                let request = ThrottleRequest {
                    key: key.to_owned(),
                    max_burst: 15,
                    count_per_period: 30,
                    period: 60,
                    quantity: 1,
                };
                let path = "/throttlecrab.RateLimiter/Throttle";
                let response: ThrottleResponse = call(client, path, request).await?;
                Ok(response.allowed)
            }
        }
    }
}

async fn call<A, B>(client: &mut Client, path: &'static str, asked: A) -> Result<B>
where
    A: Message + 'static,
    B: Message + Default + 'static,
{
    client.ready().await?;
    let codec = ProstCodec::<A, B>::default();
    let response = client.unary(Request::new(asked), PathAndQuery::from_static(path), codec).await;
    Ok(response?.into_inner())
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Policy => "spillgate, policy",
            Self::Envoy => "spillgate, envoy file",
            Self::Throttlecrab => "throttlecrab",
        })
    }
}
