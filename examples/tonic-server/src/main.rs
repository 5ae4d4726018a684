//! A gRPC service with a rate limit, and a client that is told how long to wait.
//!
//! The layer is the same as for HTTP; only the refusal is gRPC's own: the status
//! `RESOURCE_EXHAUSTED`, and in its details a `RetryInfo`, which clients in every language
//! can read. The path of a call is `/PACKAGE.SERVICE/METHOD`, so a limit can be for all of
//! a service or for one of its methods.
//!
//! The service is the health check that most gRPC servers have anyway.
//!
//! `cargo run -p tonic-server` starts it, calls it and checks what comes back, in a second;
//! `-- --serve` just serves.

use spillgate_policy::{Error, Gate, Limit, Policy};
use spillgate_tower::{GrpcStatus, SpillgateLayer};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use visit::{Client, Outcome, Visit};

// An empty message is five bytes, none of them set.
const TO_TRY: &str = r"
for i in 1 2 3 4; do printf '\0\0\0\0\0' | curl -i --http2-prior-knowledge \
    -H 'content-type: application/grpc' -H 'te: trailers' --data-binary @- --output - \
    URL/grpc.health.v1.Health/Check; done
";

fn layer() -> Result<SpillgateLayer<spillgate_policy::store::Memory, GrpcStatus>, Error> {
    let check = Limit::new("check", "1/s burst 3").path("/grpc.health.v1.Health/Check");
    let policy = Policy::builder().limit(check).build()?;
    Ok(SpillgateLayer::new(Gate::new(policy)?).respond_with(GrpcStatus))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let (listener, visit) = Visit::begin().await?;
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder()
        .layer(layer()?)
        .add_service(health)
        .serve_with_incoming(TcpIncoming::from(listener));
    visit.play(server, TO_TRY, script).await
}

async fn script(client: Client) -> Outcome {
    let channel = Channel::from_shared(client.url().to_owned())?.connect().await?;
    let mut health = HealthClient::new(channel);

    println!("Three calls at once:");
    for _ in 0..3 {
        check(&mut health).await?;
    }

    println!("\nThe fourth is too many:");
    let Err(refused) = check(&mut health).await else {
        return Err("the fourth call should have been refused".into());
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let retry = refused.get_details_retry_info().and_then(|info| info.retry_delay);
    let Some(delay) = retry else { return Err("there should be a delay".into()) };
    println!("    its details say: wait {delay:.2?}");

    tokio::time::sleep(delay).await;
    println!("\nThat much later:");
    check(&mut health).await?;
    Ok(())
}

/// Asks the server how it is.
async fn check(health: &mut HealthClient<Channel>) -> Result<(), Status> {
    let result = health.check(HealthCheckRequest::default()).await;
    match &result {
        Ok(reply) => println!("Check  OK  {:?}", reply.get_ref().status()),
        Err(status) => println!("Check  {:?}  {}", status.code(), status.message()),
    }
    result.map(drop)
}
