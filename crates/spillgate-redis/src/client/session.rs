use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Cmd, RedisError, ServerErrorKind, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use super::address::Address;
use super::checks::{Checks, TimeReading};
use super::connection::{Connection, Connector};
use super::credentials::{CredentialStore, Credentials};
use super::discovery::SentinelConnections;
use super::failure::Failure;
use super::handover::Handover;
use super::health::CallCounters;
use super::info::Info;
use super::multiplex::Answer;
use super::options::Options;
use super::queue::Permit;
use super::signals::Signals;
use crate::backend::{BackendError, Fault, Result};
use crate::script::{self, Script};

/// How sessions are opened.
pub(super) struct Plan {
    pub(super) options: Options,
    pub(super) connector: Connector,
    pub(super) credentials: Arc<CredentialStore>,
    pub(super) checks: Checks,
    pub(super) sentinels: SentinelConnections,
    pub(super) counters: Arc<CallCounters>,
    /// True if the servers are nodes of a Cluster.
    pub(super) in_cluster: bool,
}

/// Connections to a server that passed the checks.
pub(super) struct Session {
    pub(super) address: Address,
    /// The credentials that it was opened with.
    pub(super) credentials: Arc<Credentials>,
    connections: Box<[Connection]>,
    next: AtomicUsize,
    scripts: LoadedScripts,
    pub(super) signals: Arc<Signals>,
    pub(super) handover: Handover,
}

/// How often all scripts were loaded; locked while they are.
#[derive(Default)]
struct LoadedScripts {
    times: AtomicUsize,
    turn: Mutex<()>,
}

impl Session {
    /// Connects, and checks the server: its `INFO`, and that a script may write, which a replica or
    /// a full server does not allow. The script must return within the timeout of a call.
    pub(super) async fn open(
        plan: &Plan,
        credentials: Arc<Credentials>,
        address: Address,
        probe_key: &str,
    ) -> Result<Self> {
        let options = &plan.options;
        let signals = Arc::<Signals>::default();
        let mut connections = Vec::with_capacity(options.connections);
        for _ in 0..options.connections {
            let access = credentials.of_server();
            let opening = plan.connector.open(&address, access, options.database, &signals);
            connections.push(opening.await?);
        }
        let connections = connections.into_boxed_slice();
        let session = Self {
            address,
            credentials,
            connections,
            next: AtomicUsize::new(0),
            scripts: LoadedScripts::default(),
            signals,
            handover: Handover::default(),
        };
        session.within(options.connect_time_out, session.check(plan)).await?;
        session.probe(probe_key, options.command_time_out).await?;
        Ok(session)
    }

    /// Makes a call with a timeout on the next connection. Scripts that the server has lost are
    /// loaded again, within that time.
    pub(super) async fn call(
        &self,
        call: &Cmd,
        is_asking: bool,
        time_out: Duration,
        permit: Option<Permit>,
    ) -> Result<Answer, RedisError> {
        let (sent, loaded) = (Instant::now(), self.scripts.times.load(Ordering::Acquire));
        let answer = self.connection().call(call, is_asking, time_out, permit).await;
        if !answer.as_ref().is_err_and(|error| error.kind() == ServerErrorKind::NoScript.into()) {
            return answer;
        }
        // The permit is gone by now: at most as many retries as permits.
        let again = Box::pin(self.call_again(call, is_asking, sent + time_out, loaded));
        Ok(Answer { value: again.await?, took: sent.elapsed() })
    }

    /// Makes a call once all scripts are loaded.
    async fn call_again(
        &self,
        call: &Cmd,
        is_asking: bool,
        deadline: Instant,
        loaded: usize,
    ) -> Result<Value, RedisError> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let late = |_| RedisError::from(io::Error::from(io::ErrorKind::TimedOut));
        timeout_at(deadline, self.reload(loaded, left())).await.map_err(late)??;
        Ok(self.connection().call(call, is_asking, left(), None).await?.value)
    }

    /// Loads all scripts, unless another call has done so meanwhile.
    async fn reload(&self, loaded: usize, time_out: Duration) -> Result<(), RedisError> {
        let _turn = self.scripts.turn.lock().await;
        if self.scripts.times.load(Ordering::Acquire) == loaded {
            load(self.connection(), time_out).await?;
            self.scripts.times.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// `INFO memory`; `None` after a timeout.
    pub(super) async fn memory(&self, time_out: Duration) -> Option<String> {
        let mut question = Cmd::new();
        question.arg("INFO").arg("memory");
        let answer = self.connection().send(&question, time_out).await.ok()?;
        redis::from_redis_value(answer).ok()
    }

    /// `TIME`.
    pub(super) async fn time(&self, time_out: Duration) -> Result<TimeReading, RedisError> {
        let mut question = Cmd::new();
        question.arg("TIME");
        let sent = Instant::now();
        let answer = self.connection().send(&question, time_out).await?;
        let received = Instant::now();
        let (seconds, micros) = redis::from_redis_value::<(u64, u32)>(answer)?;
        let time = Duration::from_secs(seconds) + Duration::from_micros(micros.into());
        Ok(TimeReading { sent, received, time })
    }

    /// The error of a timeout.
    pub(super) fn late(&self, time_out: Duration) -> BackendError {
        let text = format!("{} did not answer in {} ms", self.address, time_out.as_millis());
        BackendError::unanswered(Fault::TimedOut, text)
    }

    async fn within(
        &self,
        time_out: Duration,
        step: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        timeout(time_out, step).await.unwrap_or_else(|_| Err(self.late(time_out)))
    }

    async fn check(&self, plan: &Plan) -> Result<()> {
        let failed = |error: RedisError| Failure::of(&self.address, &error).error;
        // First, and alone: unauthenticated clients may send no more.
        let mut question = Cmd::new();
        question.arg("INFO");
        let time_out = plan.options.connect_time_out;
        let info = self.connection().send(&question, time_out).await.map_err(failed)?;
        let info = redis::from_redis_value::<String>(info).map_err(|error| failed(error.into()))?;
        let info = Info(&info);
        info.check(&self.address, plan.in_cluster)?;
        plan.checks.note_eviction_on_connect(&self.address, info.eviction())?;
        load(self.connection(), time_out).await.map_err(failed)
    }

    async fn probe(&self, key: &str, time_out: Duration) -> Result<()> {
        let probe = Script::Probe.call_about(key.as_bytes(), &[]);
        match self.call(&probe, false, time_out, None).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_timeout() => Err(self.late(time_out)),
            // A node whose slot has moved is fine.
            Err(error) if error.is_cluster_error() && error.redirect_node().is_some() => Ok(()),
            Err(error) => Err(Failure::of(&self.address, &error).error),
        }
    }

    /// The next connection, round robin.
    fn connection(&self) -> &Connection {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        &self.connections[turn % self.connections.len()]
    }
}

/// Loads all scripts.
async fn load(connection: &Connection, time_out: Duration) -> Result<(), RedisError> {
    for reply in connection.send_all(&script::loading(), time_out).await? {
        reply.extract_error()?;
    }
    Ok(())
}
