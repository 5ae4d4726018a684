//! A client of gRPC, and servers that it asks.

use std::path::Path;

use http::uri::PathAndQuery;
use spillgate_server::protocol::grpc::messages::{
    DescriptorStatus, Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest,
    RateLimitResponse,
};
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{IntoRequest, Status};
use tonic_prost::ProstCodec;

use crate::common::server::{Home, Server};

pub(crate) const OK: i32 = 1;
pub(crate) const OVER_LIMIT: i32 = 2;

/// Listens for HTTP and gRPC on free ports.
pub(crate) const SERVER: &str =
    "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\ngrpc = '127.0.0.1:0'\n";

/// A server with limits of a policy, and with files of envoyproxy/ratelimit, each a name and a
/// text.
pub(crate) fn start(policy: &str, files: &[(&str, &str)], arguments: &[&str]) -> (Home, Server) {
    let home = Home::new(&format!("{SERVER}{policy}"));
    if files.is_empty() {
        let server = home.start(arguments);
        return (home, server);
    }
    let folder = home.path("envoy");
    std::fs::create_dir(&folder).unwrap();
    files.iter().for_each(|(name, text)| write(&folder, name, text));
    let mut all = vec!["--envoy-config", folder.to_str().unwrap()];
    all.extend_from_slice(arguments);
    let server = home.start(&all);
    (home, server)
}

/// Writes a file, all of it at once.
pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join("new"), text).unwrap();
    std::fs::rename(folder.join("new"), folder.join(name)).unwrap();
}

pub(crate) async fn channel(server: &Server) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.grpc)).unwrap();
    endpoint.connect().await.unwrap()
}

#[derive(Clone)]
pub(crate) struct Client(Grpc<Channel>);

impl Client {
    pub(crate) async fn to(server: &Server) -> Self {
        Self::over(channel(server).await)
    }

    pub(crate) fn over(channel: Channel) -> Self {
        Self(Grpc::new(channel))
    }

    pub(crate) async fn call(
        &mut self,
        request: impl IntoRequest<RateLimitRequest>,
    ) -> Result<RateLimitResponse, Status> {
        let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
        let (path, codec) = (PathAndQuery::from_static(path), ProstCodec::default());
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let answer = self.0.unary(request.into_request(), path, codec).await;
        answer.map(tonic::Response::into_inner)
    }

    pub(crate) async fn try_ask(
        &mut self,
        domain: &str,
        hits_addend: u32,
        descriptors: &[RateLimitDescriptor],
    ) -> Result<RateLimitResponse, Status> {
        let (domain, descriptors) = (domain.to_owned(), descriptors.to_vec());
        let request = RateLimitRequest { domain, descriptors, hits_addend };
        self.call(request).await
    }

    pub(crate) async fn ask(
        &mut self,
        domain: &str,
        descriptors: &[RateLimitDescriptor],
    ) -> RateLimitResponse {
        self.try_ask(domain, 0, descriptors).await.unwrap()
    }

    /// The status of the only descriptor.
    pub(crate) async fn status(
        &mut self,
        domain: &str,
        descriptor: &RateLimitDescriptor,
    ) -> DescriptorStatus {
        let mut response = self.ask(domain, std::slice::from_ref(descriptor)).await;
        assert_eq!(response.statuses.len(), 1);
        let status = response.statuses.remove(0);
        assert_eq!(response.overall_code, status.code);
        status
    }
}

pub(crate) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry =
        |(key, value): &(&str, &str)| Entry { key: (*key).to_owned(), value: (*value).to_owned() };
    RateLimitDescriptor {
        entries: entries.iter().map(entry).collect(),
        ..RateLimitDescriptor::default()
    }
}

pub(crate) fn with_hits(descriptor: &RateLimitDescriptor, value: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { hits_addend: Some(value), ..descriptor.clone() }
}

pub(crate) fn giving_back(descriptor: &RateLimitDescriptor, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { is_negative_hits: true, ..with_hits(descriptor, hits) }
}

pub(crate) fn with_limit(
    descriptor: &RateLimitDescriptor,
    requests_per_unit: u32,
    unit: i32,
) -> RateLimitDescriptor {
    let limit = Some(RateLimitOverride { requests_per_unit, unit });
    RateLimitDescriptor { limit, ..descriptor.clone() }
}

/// The value of a metric, which is 0 as long as it is not told.
pub(crate) fn metric(server: &Server, name: &str) -> f64 {
    let metrics = server.get("/metrics");
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().unwrap())
}

/// How many descriptors had an outcome.
pub(crate) fn outcome(server: &Server, outcome: &str) -> f64 {
    metric(server, &format!("spillgate_grpc_descriptors_total{{outcome=\"{outcome}\"}}"))
}
