use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use spillgate_policy::{Answer, Gate, Limit, Policy};

use crate::Result;

/// A gate, and who asks it for what.
pub struct Scene {
    pub name: String,
    pub gate: Gate,
    pub calls: Vec<Call>,
    /// What each call must be answered: nothing that was measured means much otherwise.
    pub answer: Answer,
}

/// What differs from one request to another.
#[derive(Clone)]
pub struct Call {
    /// Shared by all that have it: where requests lie in memory is not what is measured.
    pub path: Arc<str>,
    pub peer: IpAddr,
}

impl Scene {
    /// One in which every call is allowed.
    pub fn new(name: impl Into<String>, policy: Policy, calls: Vec<Call>) -> Result<Self> {
        let gate = Gate::new(policy)?;
        Ok(Self { name: name.into(), gate, calls, answer: Answer::Allowed })
    }
}

/// A limit that allows more than can be asked for.
pub fn ample(name: impl Into<String>) -> Limit {
    Limit::new(name, "10000000/s burst 1000000")
}

/// The caller of this number.
pub fn caller(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0A00_0000 + number).into()
}

/// The same in every run.
pub fn random() -> fastrand::Rng {
    fastrand::Rng::with_seed(7)
}
