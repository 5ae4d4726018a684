//! An enforcer over either store.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pyo3::prelude::*;
use spillgate_bindings::AnyClock;
use spillgate_enforce::Enforcer;
use spillgate_policy::Error;
use spillgate_policy::store::Memory;

use super::decided::Decided;
use super::question::Question;
use super::redis::Live;

/// A gate that decides: in this process, or by Redis.
#[derive(Clone)]
pub(super) enum Backend {
    Memory(Arc<Enforcer<Memory<AnyClock>>>),
    Redis(Arc<Live>),
}

/// Calls the same code for both enforcers.
macro_rules! with_enforcer {
    ($backend:expr, $enforcer:ident => $code:expr) => {
        match $backend {
            Backend::Memory($enforcer) => $code,
            Backend::Redis(live) => {
                let (_entered, $enforcer) = (live.enter(), live.enforcer());
                $code
            }
        }
    };
}
pub(super) use with_enforcer;

/// Runs a future to its end: at once if the store is in this process, otherwise without holding up
/// other threads.
macro_rules! wait_for {
    ($py:expr, $backend:expr, $enforcer:ident => $future:expr) => {
        match $backend {
            Backend::Memory($enforcer) => $crate::gate::backend::at_once($future),
            Backend::Redis(live) => {
                let $enforcer = live.enforcer();
                Some($py.detach(|| live.block_on($future)))
            }
        }
    };
}
pub(super) use wait_for;

/// The output of a future that never waits.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl Backend {
    /// Decides without waiting, if the store can.
    pub(super) fn try_decide(&self, question: &Question) -> Option<Result<Decided, Error>> {
        with_enforcer!(self, enforcer => {
            let decided = question.try_decide(enforcer)?;
            Some(Decided::of(enforcer, question, decided))
        })
    }

    /// Decides, waiting for the store.
    pub(super) fn decide(&self, py: Python<'_>, question: &Question) -> Result<Decided, Error> {
        if let Some(decided) = self.try_decide(question) {
            return decided;
        }
        let decided = wait_for!(py, self, enforcer => question.decide(enforcer));
        let decided = decided.unwrap_or_else(|| Err(Error::store("the store did not answer")));
        with_enforcer!(self, enforcer => Decided::of(enforcer, question, decided))
    }
}
