//! Adaptive limits, in front of services.

mod answers;
mod endings;
mod metrics;
mod outage;
mod priorities;
mod shed;
mod sockets;

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use spillgate::ManualClock;
use spillgate_policy::store::Memory;
use spillgate_policy::{AdaptiveState, Answer as Verdict};
use spillgate_tower::SpillgateLayer;
use tower::{Layer, ServiceExt};

use crate::common::{Body, PEER, TestGate, gate, get, service};

type Layered = SpillgateLayer<Memory<ManualClock>>;

/// One request in flight, whatever happens.
const ONE: &str = "[[limit]]\nname = \"service\"\nadaptive = { min = 1, max = 1 }\n";

/// The fewer responses are good, the fewer requests go ahead.
const SPARED: &str = "[[limit]]\nname = \"service\"\nadaptive = { controller = \"errors\" }\n";

fn layer(policy: &str) -> (Layered, Arc<TestGate>, ManualClock) {
    let (gate, clock) = gate(policy);
    let gate = Arc::new(gate);
    (SpillgateLayer::new(Arc::clone(&gate)).log(false), gate, clock)
}

/// A request that is in flight for as long as its response is there.
async fn open(
    layer: &Layered,
    request: Request<()>,
) -> Response<spillgate_tower::ResponseBody<Body>> {
    let Ok(response) =
        layer.layer(service(|_| Response::new("hello".into()))).oneshot(request).await;
    response
}

/// The only adaptive limit.
fn state(gate: &TestGate) -> AdaptiveState {
    let [state] = <[_; 1]>::try_from(gate.adaptive_states()).unwrap();
    state
}

/// What the gate says of a request now, if nothing else does.
async fn verdict(gate: &TestGate) -> Verdict {
    let (parts, ()) = get(PEER, "/").into_parts();
    let request = spillgate_policy::RequestView::from_parts(&parts, Some(PEER.parse().unwrap()));
    gate.explain(&request).await.unwrap().answer
}

/// Does something ten times per second, for some seconds.
async fn for_seconds(seconds: u64, clock: &ManualClock, mut each: impl AsyncFnMut()) {
    for _ in 0..seconds * 10 {
        each().await;
        clock.advance(Duration::from_millis(100));
    }
}
