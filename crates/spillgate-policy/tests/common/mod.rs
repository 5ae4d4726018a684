//! Requests, and a gate whose clock the test moves.

use std::net::IpAddr;

use http::request::Parts;
use spillgate::ManualClock;
use spillgate_policy::store::Memory;
use spillgate_policy::{Explanation, Gate, Outcome, Policy, RequestView};

pub(crate) type TestGate = Gate<Memory<ManualClock>>;

/// A request to be sent from some address.
pub(crate) struct Call {
    parts: Parts,
    peer: Option<IpAddr>,
}

/// `get("203.0.113.7", "/users/7")`
pub(crate) fn get(peer: &str, path: &str) -> Call {
    call("GET", peer, path)
}

pub(crate) fn call(method: &str, peer: &str, path: &str) -> Call {
    let request = http::Request::builder().method(method).uri(path).body(()).unwrap();
    Call { parts: request.into_parts().0, peer: peer.parse().ok() }
}

impl Call {
    /// Adds a header line.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let name: http::HeaderName = name.parse().unwrap();
        let value = http::HeaderValue::from_bytes(value.as_ref()).unwrap();
        self.parts.headers.append(name, value);
        self
    }

    pub(crate) fn request(&self) -> RequestView<'_> {
        RequestView::from_parts(&self.parts, self.peer)
    }

    pub(crate) fn through(&self, gate: &TestGate) -> Outcome<'static> {
        gate.try_decide(&self.request(), |it| it.map(Outcome::take)).unwrap().unwrap()
    }

    /// How many of these calls pass at once.
    pub(crate) fn passes(&self, gate: &TestGate, calls: usize) -> usize {
        (0..calls).filter(|_| self.through(gate).is_allowed()).count()
    }

    pub(crate) fn explained(&self, gate: &TestGate) -> Explanation {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(gate.explain(&self.request())).unwrap()
    }

    /// The limits that it meets.
    pub(crate) fn met(&self, gate: &TestGate) -> Vec<String> {
        let limits = self.explained(gate).limits.into_iter();
        limits.filter(|limit| limit.state.is_some()).map(|limit| limit.name).collect()
    }

    /// Whom the gate takes the sender for.
    pub(crate) fn caller(&self, gate: &TestGate) -> String {
        self.explained(gate).caller
    }
}

/// The output of a future that is ready at once, as all of a gate in memory are.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    let Some(output) = try_once(future) else { unreachable!("memory does not wait") };
    output
}

/// The output of a future that is polled once, and dropped.
pub(crate) fn try_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

pub(crate) fn gate(policy: &str) -> (TestGate, ManualClock) {
    gate_of(Policy::from_toml(policy).unwrap())
}

pub(crate) fn gate_of(policy: Policy) -> (TestGate, ManualClock) {
    let clock = ManualClock::default();
    (Gate::with_store(policy, Memory::new(clock.clone())).unwrap(), clock)
}

/// Everything that is wrong in a policy, a line each.
pub(crate) fn problems(policy: &str) -> Vec<String> {
    let error = Policy::from_toml(policy).unwrap_err();
    error.problems().iter().map(ToString::to_string).collect()
}
