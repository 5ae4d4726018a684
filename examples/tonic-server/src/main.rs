//! A gRPC service with a rate limit.
//!
//! The layer is the same as for HTTP; only the refusal is gRPC's own: the status `RESOURCE_EXHAUSTED` with a
//! `RetryInfo` in its details, which clients in every language can read. The path of a call is
//! `/PACKAGE.SERVICE/METHOD`, so a limit can cover a service or a single method.
//!
//! The service is the health check that most gRPC servers have anyway.
//!
//! ```text
//! cargo run -p tonic-server
//! grpcurl -plaintext 127.0.0.1:3000 grpc.health.v1.Health/Check
//! ```

use std::error::Error;

use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Limit, Policy};
use spillgate_tower::{GrpcStatus, SpillgateLayer};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

fn layer() -> Result<SpillgateLayer<Memory, GrpcStatus>, spillgate_policy::Error> {
    let check = Limit::new("check", "1/s burst 3").path("/grpc.health.v1.Health/Check");
    let policy = Policy::builder().limit(check).build()?;
    Ok(SpillgateLayer::new(Gate::new(policy)?).respond_with(GrpcStatus))
}

async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (_, health) = tonic_health::server::health_reporter();
    Server::builder()
        .layer(layer()?)
        .add_service(health)
        .serve_with_incoming(TcpIncoming::from(listener))
        .await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    serve(listener).await
}

#[cfg(test)]
mod tests {
    use tonic::transport::Channel;
    use tonic::{Code, Status};
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;
    use tonic_types::StatusExt;

    use super::*;

    async fn check(client: &mut HealthClient<Channel>) -> Result<(), Status> {
        client.check(HealthCheckRequest::default()).await.map(drop)
    }

    #[tokio::test]
    async fn a_denied_call_says_how_long_to_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(serve(listener));
        let channel = Channel::from_shared(url).unwrap().connect().await.unwrap();
        let mut client = HealthClient::new(channel);
        for _ in 0..3 {
            check(&mut client).await.unwrap();
        }
        let denied = check(&mut client).await.unwrap_err();
        assert_eq!(denied.code(), Code::ResourceExhausted);
        let retry = denied.get_details_retry_info().and_then(|info| info.retry_delay);
        tokio::time::sleep(retry.unwrap()).await;
        check(&mut client).await.unwrap();
        server.abort();
    }
}
