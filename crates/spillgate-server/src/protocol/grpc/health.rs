//! Whether the server is ready, as orchestrators ask.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::watch;
use tonic::{Request, Response, Status, async_trait};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::{Phase, Readiness};

/// Tells what [`Readiness`] says, of the server and of the rate-limit service.
#[derive(Debug)]
pub(super) struct Health(pub(super) Arc<Readiness>);

const SERVICES: [&str; 2] = ["", "envoy.service.ratelimit.v3.RateLimitService"];

#[async_trait]
impl health_server::Health for Health {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(request.get_ref()) {
            return Err(Status::not_found("unknown service"));
        }
        Ok(Response::new(response(status(self.0.phase()))))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let is_known = is_known(request.get_ref());
        Ok(Response::new(Box::pin(changes(self.0.watch(), is_known))))
    }
}

/// What a service is now and becomes, until the server ends.
fn changes(
    phases: watch::Receiver<Phase>,
    is_known: bool,
) -> impl Stream<Item = Result<HealthCheckResponse, Status>> {
    unfold(Some((phases, None)), move |state| async move {
        let (mut phases, last) = state?;
        loop {
            let phase = *phases.borrow_and_update();
            let now = if is_known { status(phase) } else { ServingStatus::ServiceUnknown };
            let is_last = phase == Phase::Draining;
            if last != Some(now) || is_last {
                let next = (!is_last).then_some((phases, Some(now)));
                return Some((Ok(response(now)), next));
            }
            phases.changed().await.ok()?;
        }
    })
}

fn is_known(request: &HealthCheckRequest) -> bool {
    SERVICES.contains(&request.service.as_str())
}

fn status(phase: Phase) -> ServingStatus {
    match phase {
        Phase::Ready => ServingStatus::Serving,
        Phase::Starting | Phase::Draining => ServingStatus::NotServing,
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status as i32 }
}
