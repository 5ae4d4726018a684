//! The protocols that a server speaks.

pub mod grpc;
pub mod http;
pub mod resp;
