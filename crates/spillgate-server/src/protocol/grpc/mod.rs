//! gRPC: Envoy's rate-limit service, health and reflection.
//!
//! `envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit` is answered from the
//! connection's own task: whatever has arrived together is answered together, with one write.
//! `docs/envoy.md` shows how to use it.

mod answer;
mod asked;
mod body;
mod bounds;
mod call;
mod connection;
mod file_descriptors;
mod guard;
mod health;
mod metadata;
mod pipe;
mod protocol;
mod reply;
mod side_services;
mod stats;

pub use self::connection::serve;
pub(crate) use self::protocol::{DEFAULT_PORT, GrpcProtocol};
pub(crate) use self::side_services::SideServices;
pub use self::stats::{DescriptorResult, Stats};
