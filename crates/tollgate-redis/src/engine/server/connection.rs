use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::Address;
use super::bounded::Bounded;
use super::failure::{Failure, unreachable_because};
use super::gather::Gathering;
use super::options::{Login, Options};
use super::secret::Secret;
use super::task::Task;
use super::tls;
use crate::engine::{EngineError, Fault};

/// Calls that may wait to be written. Those beyond wait for a place, within their time-out.
const QUEUE: usize = 1024;

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    tls: Option<TlsConnector>,
    time_out: Duration,
}

/// A connection that many calls share: they are written as they come, as many at a time as
/// there are, and answered in that order. It is closed when this is dropped.
pub(super) struct Connection {
    calls: MultiplexedConnection,
    _driver: Task,
}

impl Connector {
    /// One for these options. Reads certificates, so that they are not read by every attempt.
    pub(super) fn new(options: &Options) -> Result<Self, EngineError> {
        let authorities = options.authorities.as_deref();
        let tls = options.is_tls.then(|| tls::connector(authorities)).transpose()?;
        Ok(Self { tls, time_out: options.connect_time_out })
    }

    /// Opens a connection and logs in on it. `lost` is notified when it has ended.
    pub(super) async fn open(
        &self,
        address: &Address,
        login: &Login,
        database: u32,
        lost: &Arc<Notify>,
    ) -> Result<Connection, EngineError> {
        let opening = async {
            let connection = self.connect(address, lost.clone()).await.map_err(|why| {
                let why = why.get_ref().map_or_else(|| why.to_string(), ToString::to_string);
                unreachable_because(address, &why)
            })?;
            connection.greet(address, login, database).await?;
            Ok(connection)
        };
        self.in_time(address, opening).await
    }

    /// Asks one question on a connection of its own.
    pub(super) async fn ask(
        &self,
        address: &Address,
        login: &Login,
        question: &Cmd,
    ) -> Result<Value, EngineError> {
        let connection = self.open(address, login, 0, &Arc::default()).await?;
        let asking = async {
            let answer = connection.send(question).await;
            answer.map_err(|error| Failure::of(address, &error).error)
        };
        self.in_time(address, asking).await
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

    async fn connect(&self, address: &Address, lost: Arc<Notify>) -> io::Result<Connection> {
        match address {
            Address::Unix(path) => Connection::over(UnixStream::connect(path).await?, lost).await,
            Address::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                match &self.tls {
                    None => Connection::over(stream, lost).await,
                    Some(tls) => {
                        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                        Connection::over(tls.connect(name, stream).await?, lost).await
                    }
                }
            }
        }
    }
}

impl Connection {
    async fn over<S>(stream: S, lost: Arc<Notify>) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        // Nothing is sent here, and calls are timed by those who make them.
        let nothing = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(QUEUE);
        let stream = Gathering::new(Bounded::new(stream));
        let (calls, driver) = MultiplexedConnection::new_with_config(&nothing, stream, config)
            .await
            .map_err(io::Error::other)?;
        let driver = Task::spawn(async move {
            driver.await;
            lost.notify_one();
        });
        Ok(Self { calls, _driver: driver })
    }

    /// Logs in, chooses the database, and says what we are in the server's list of clients.
    async fn greet(
        &self,
        address: &Address,
        login: &Login,
        database: u32,
    ) -> Result<(), EngineError> {
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
        let replies = self.send_all(&greeting).await;
        let failed = |why| Failure::of(address, &why).error;
        for reply in replies.map_err(failed)?.into_iter().take(needed) {
            reply.extract_error().map_err(failed)?;
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
