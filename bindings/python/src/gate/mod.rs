//! Policies and gates.

mod backend;
mod decided;
mod outcome;
mod pending;
mod policy;
mod question;
mod redis;
mod request;
mod settings;

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use spillgate_bindings::AnyClock;
use spillgate_enforce::Enforcer;
use spillgate_policy::Error;
use spillgate_policy::store::Memory;

use self::backend::{Backend, wait_for, with_enforcer};
use self::decided::Decided;
pub(crate) use self::outcome::{LimitState, Outcome};
use self::pending::Pending;
pub(crate) use self::policy::Policy;
use self::policy::{PolicyOrText, Source};
use self::question::{Question, texts};
pub(crate) use self::redis::close_all;
use self::redis::{Lazy, Sharing};
use self::request::Request;
use self::settings::Enforcing;
use crate::aio;
use crate::clock::ManualClock;
use crate::decision::Decision;
use crate::errors::invalid;

/// A policy and what callers have spent under it, in this process or in Redis.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct Gate {
    store: GateStore,
    /// What is in force.
    source: Mutex<Source>,
    enforcing: Enforcing,
}

enum GateStore {
    Memory(Arc<Enforcer<Memory<AnyClock>>>),
    Redis(Box<Lazy>),
}

#[pymethods]
impl Gate {
    #[new]
    #[pyo3(signature = (
        policy, *, clock=None, redis=None, prefix="spillgate:", secret=None, nodes=None,
        on_store_error="refuse", headers=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        policy: PolicyOrText<'_>,
        clock: Option<&Bound<'_, ManualClock>>,
        redis: Option<&str>,
        prefix: &str,
        secret: Option<&str>,
        nodes: Option<NonZeroU32>,
        on_store_error: &str,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let source = policy.source()?;
        let enforcing = Enforcing::new(on_store_error, headers)?;
        let store = match (redis, clock) {
            (Some(_), Some(_)) => {
                return Err(invalid("a gate over Redis goes by the clock of Redis; remove clock"));
            }
            (Some(url), None) => {
                let sharing = Sharing::new(url, prefix, secret, nodes).map_err(invalid)?;
                GateStore::Redis(Box::new(Lazy::new(sharing)))
            }
            (None, clock) => {
                let clock = clock.map(|clock| AnyClock::Manual(clock.get().clock.clone()));
                GateStore::Memory(memory(&source, clock.unwrap_or_default(), enforcing)?)
            }
        };
        Ok(Self { store, source: Mutex::new(source), enforcing })
    }

    /// True if no decision waits: the store is not in Redis.
    #[getter]
    fn in_process(&self) -> bool {
        matches!(self.store, GateStore::Memory(_))
    }

    /// Decides a request. `path` is as it was sent; a query is ignored.
    #[pyo3(signature = (*, method="GET", path=None, headers=None, peer=None, host=None, caller=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn decide(
        &self,
        py: Python<'_>,
        method: &str,
        path: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        peer: Option<&Bound<'_, PyAny>>,
        host: Option<String>,
        caller: Option<&str>,
    ) -> PyResult<Outcome> {
        let request = Request::new(method, path, headers, peer, host, caller)?;
        self.ask(py, &Question::Request(request))
    }

    /// `decide` for event loops.
    #[pyo3(signature = (*, method="GET", path=None, headers=None, peer=None, host=None, caller=None))]
    fn decide_async<'py>(
        slf: &Bound<'py, Self>,
        method: &str,
        path: Option<&Bound<'py, PyAny>>,
        headers: Option<&Bound<'py, PyAny>>,
        peer: Option<&Bound<'py, PyAny>>,
        host: Option<String>,
        caller: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request = Request::new(method, path, headers, peer, host, caller)?;
        Self::ask_async(slf, Question::Request(request))
    }

    /// Spends under a limit by name, one value for each part of its `per`.
    #[pyo3(signature = (limit, values=Vec::new(), cost=1))]
    fn check_limit(
        &self,
        py: Python<'_>,
        limit: String,
        values: Vec<String>,
        cost: u64,
    ) -> PyResult<Outcome> {
        self.ask(py, &Question::Limit { limit, values, cost, request: Request::default() })
    }

    /// `check_limit` for event loops.
    #[pyo3(signature = (limit, values=Vec::new(), cost=1))]
    fn check_limit_async<'py>(
        slf: &Bound<'py, Self>,
        limit: String,
        values: Vec<String>,
        cost: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = Question::Limit { limit, values, cost, request: Request::default() };
        Self::ask_async(slf, question)
    }

    /// What `check_limit` would answer, without spending.
    #[pyo3(signature = (limit, values=Vec::new(), cost=1))]
    #[expect(clippy::needless_pass_by_value, reason = "made from a Python list")]
    fn peek_limit(
        &self,
        py: Python<'_>,
        limit: &str,
        values: Vec<String>,
        cost: u64,
    ) -> PyResult<Decision> {
        let (backend, values) = (self.backend(py).map_err(invalid)?, texts(&values));
        let peeked = wait_for!(py, &backend, enforcer => {
            enforcer.gate().peek_limit(limit, &values, cost)
        });
        answered(peeked).map(Decision)
    }

    /// Forgets what a caller has spent under a limit.
    #[pyo3(signature = (limit, values=Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "made from a Python list")]
    fn reset_limit(&self, py: Python<'_>, limit: &str, values: Vec<String>) -> PyResult<()> {
        let (backend, values) = (self.backend(py).map_err(invalid)?, texts(&values));
        let reset =
            wait_for!(py, &backend, enforcer => enforcer.gate().reset_limit(limit, &values));
        answered(reset)
    }

    /// Puts another policy in force; what was spent stays spent where limits are the same.
    fn replace(&self, py: Python<'_>, policy: PolicyOrText<'_>) -> PyResult<()> {
        let source = policy.source()?;
        let policy = source.compile().map_err(invalid)?;
        let backend = self.backend(py).map_err(invalid)?;
        with_enforcer!(&backend, enforcer => enforcer.gate().replace(policy).map_err(invalid))?;
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = source;
        Ok(())
    }

    /// The names of the limits, in the order of the policy.
    fn limits(&self) -> PyResult<Vec<String>> {
        let policy = self.source().compile().map_err(invalid)?;
        Ok(policy.limits().map(ToOwned::to_owned).collect())
    }

    /// Gives leases back to Redis and ends the connection. Safe to call twice.
    fn close(&self, py: Python<'_>) {
        if let GateStore::Redis(lazy) = &self.store
            && let Some(live) = lazy.take()
        {
            py.detach(|| live.close());
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }
}

impl Gate {
    fn ask(&self, py: Python<'_>, question: &Question) -> PyResult<Outcome> {
        let backend = match self.backend(py) {
            Ok(backend) => backend,
            Err(error) => return self.undecided(py, question, error),
        };
        let decided = backend.decide(py, question).map_err(invalid)?;
        Ok(Outcome::new(backend, decided))
    }

    /// What becomes of a question if there is no backend: if its store is the reason,
    /// `on_store_error` decides.
    fn undecided(&self, py: Python<'_>, question: &Question, error: Error) -> PyResult<Outcome> {
        let logger = py.import("logging")?.call_method1("getLogger", ("spillgate",))?;
        logger.call_method1("error", ("the gate cannot start: %s", error.to_string()))?;
        let enforcer = memory(&self.source(), AnyClock::default(), self.enforcing)?;
        let decided = Decided::of(&enforcer, question, Err(error)).map_err(invalid)?;
        Ok(Outcome::new(Backend::Memory(enforcer), decided))
    }

    fn ask_async<'py>(slf: &Bound<'py, Self>, question: Question) -> PyResult<Bound<'py, PyAny>> {
        let pending = Pending::Decide { gate: slf.clone().unbind(), question: Arc::new(question) };
        aio::function(slf.py(), "result")?.call1((pending,))
    }

    /// What decides, in this process.
    fn backend(&self, py: Python<'_>) -> Result<Backend, Error> {
        match &self.store {
            GateStore::Memory(enforcer) => Ok(Backend::Memory(Arc::clone(enforcer))),
            GateStore::Redis(lazy) => match lazy.started() {
                Some(live) => Ok(Backend::Redis(live)),
                None => {
                    let live = lazy.live(py, &self.source(), self.enforcing);
                    live.map(Backend::Redis)
                }
            },
        }
    }

    fn source(&self) -> Source {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A gate in this process.
fn memory(
    source: &Source,
    clock: AnyClock,
    enforcing: Enforcing,
) -> PyResult<Arc<Enforcer<Memory<AnyClock>>>> {
    let policy = source.compile().map_err(invalid)?;
    let gate = spillgate_policy::Gate::with_store(policy, Memory::new(clock)).map_err(invalid)?;
    Ok(Arc::new(enforcing.apply(Enforcer::new(gate))))
}

fn answered<T>(answer: Option<Result<T, Error>>) -> PyResult<T> {
    match answer {
        Some(answer) => answer.map_err(invalid),
        None => Err(invalid("the store did not answer")),
    }
}
