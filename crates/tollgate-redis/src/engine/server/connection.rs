use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisError, Value,
};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::address::Address;
use super::bounded::Bounded;
use super::credentials::Access;
use super::failure::{Failure, unreachable_because};
use super::gather::Gathering;
use super::options::Login;
use super::secret::Secret;
use super::stream::Stream;
use super::task::Task;
use super::tls::{Handshake, TlsClient};
use crate::engine::{EngineError, Fault};

/// Calls that may wait to be written. Those beyond wait for a place, within their time-out.
const QUEUE: usize = 1024;

/// Opens connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connector {
    time_out: Duration,
}

/// A connection that many calls share: they are written as they come, as many at a time as
/// there are, and answered in that order. It is closed when this is dropped.
pub(super) struct Connection {
    calls: MultiplexedConnection,
    _driver: Task,
}

impl Connector {
    pub(super) fn new(time_out: Duration) -> Self {
        Self { time_out }
    }

    /// Opens a connection and logs in on it. `lost` is notified when it has ended.
    pub(super) async fn open(
        &self,
        address: &Address,
        access: Access<'_>,
        database: u32,
        lost: &Arc<Notify>,
    ) -> Result<Connection, EngineError> {
        let opening = async {
            let (stream, handshake) = reach(address, access.tls).await?;
            let connection = Connection::over(stream, lost.clone()).await;
            let connection = connection.map_err(|why| unreachable_because(address, &why))?;
            match connection.greet(access.login, database).await {
                Ok(()) => Ok(connection),
                Err(why) => Err(refusal(address, handshake.as_ref(), &why)),
            }
        };
        self.in_time(address, opening).await
    }

    /// Asks one question on a connection of its own.
    pub(super) async fn ask(
        &self,
        address: &Address,
        access: Access<'_>,
        question: &Cmd,
    ) -> Result<Value, EngineError> {
        let connection = self.open(address, access, 0, &Arc::default()).await?;
        let asking = async {
            let answer = connection.send(question).await;
            answer.map_err(|error| Failure::of(address, &error).error)
        };
        self.in_time(address, asking).await
    }

    /// Logs in on a connection of its own, and hears what is published on channels.
    pub(super) async fn subscribe(
        &self,
        address: &Address,
        access: Access<'_>,
        channels: &[&str],
    ) -> Result<PubSub, EngineError> {
        let subscribing = async {
            let (stream, handshake) = reach(address, access.tls).await?;
            let subscribed = async {
                let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
                if let Some(user) = &access.login.user {
                    login = login.set_username(user);
                }
                if let Some(password) = &access.login.password {
                    login = login.set_password(password.expose());
                }
                let mut subscription = PubSub::new(&login, stream).await?;
                subscription.subscribe(channels).await?;
                Ok(subscription)
            };
            subscribed.await.map_err(|why| refusal(address, handshake.as_ref(), &why))
        };
        self.in_time(address, subscribing).await
    }

    async fn in_time<T>(
        &self,
        address: &Address,
        step: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        timeout(self.time_out, step).await.unwrap_or_else(|_| {
            let text = format!("{address} did not answer in {} ms", self.time_out.as_millis());
            Err(EngineError::new(Fault::Unreachable, text))
        })
    }
}

/// Opens a stream, with TLS if that is spoken.
async fn reach(
    address: &Address,
    tls: Option<&TlsClient>,
) -> Result<(Stream, Option<Handshake>), EngineError> {
    let failed = |why: io::Error| unreachable_because(address, &why);
    match address {
        Address::Unix(path) => {
            Ok((Stream::Unix(UnixStream::connect(path).await.map_err(failed)?), None))
        }
        Address::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            let Some(tls) = tls else { return Ok((Stream::Tcp(stream), None)) };
            let connection = tls.connect(address, stream).await?;
            let handshake = connection.handshake().clone();
            Ok((Stream::Tls(Box::new(connection)), Some(handshake)))
        }
    }
}

/// Why a server did not let us in.
fn refusal(address: &Address, handshake: Option<&Handshake>, why: &RedisError) -> EngineError {
    let is_lost = why.kind() == ErrorKind::Io;
    let refused = handshake.filter(|_| is_lost).and_then(|known| known.refusal(address));
    refused.unwrap_or_else(|| Failure::of(address, why).error)
}

impl Connection {
    async fn over(stream: Stream, lost: Arc<Notify>) -> Result<Self, RedisError> {
        // Nothing is sent here, and calls are timed by those who make them.
        let nothing = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(QUEUE);
        let stream = Gathering::new(Bounded::new(stream));
        let (calls, driver) =
            MultiplexedConnection::new_with_config(&nothing, stream, config).await?;
        let driver = Task::spawn(async move {
            driver.await;
            lost.notify_one();
        });
        Ok(Self { calls, _driver: driver })
    }

    /// Logs in, chooses the database, and says what we are in the server's list of clients.
    async fn greet(&self, login: &Login, database: u32) -> Result<(), RedisError> {
        let mut greeting = Pipeline::new();
        if login.user.is_some() || login.password.is_some() {
            // A user that needs no password is content with any.
            let password = login.password.as_ref().map_or("", Secret::expose);
            greeting.cmd("AUTH").arg(login.user.as_deref()).arg(password);
        }
        if database > 0 {
            greeting.cmd("SELECT").arg(database);
        }
        let needed = greeting.len();
        // Versions before 7.2 know it not, and nobody else needs it.
        greeting.cmd("CLIENT").arg("SETINFO").arg("LIB-NAME").arg("tollgate");
        for reply in self.send_all(&greeting).await?.into_iter().take(needed) {
            reply.extract_error()?;
        }
        Ok(())
    }

    /// Makes a call. An error that the server answers is an error.
    pub(super) async fn send(&self, call: &Cmd) -> Result<Value, RedisError> {
        self.calls.clone().send_packed_command(call).await?.extract_error()
    }

    /// Makes several calls, in one write and with no other call between them.
    pub(super) async fn send_all(&self, calls: &Pipeline) -> Result<Vec<Value>, RedisError> {
        self.calls.clone().req_packed_commands(calls, 0, calls.len()).await
    }
}
