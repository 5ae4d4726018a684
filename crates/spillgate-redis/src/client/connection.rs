use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::aio::PubSub;
use redis::{Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisError, Value};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::timeout;

use super::AbortOnDrop;
use super::address::Address;
use super::bounded::Bounded;
use super::credentials::Access;
use super::failure::{Failure, unreachable_because};
use super::multiplex::{Answer, Multiplexer};
use super::options::Login;
use super::queue::Permit;
use super::signals::Signals;
use super::stream::Stream;
use super::tls::{Handshake, TlsClient};
use crate::backend::{BackendError, Fault, Result};

/// Opens connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connector {
    pub(super) time_out: Duration,
}

/// A connection shared by many calls, which are pipelined. It is closed on drop.
pub(super) struct Connection {
    calls: Multiplexer,
    _driver: AbortOnDrop,
}

impl Connector {
    /// Opens a connection and authenticates.
    pub(super) async fn open(
        &self,
        address: &Address,
        access: Access<'_>,
        database: u32,
        signals: &Arc<Signals>,
    ) -> Result<Connection> {
        let opening = async {
            let (stream, handshake) = reach(address, access.tls).await?;
            let connection = Connection::over(stream, signals.clone());
            match connection.greet(access.login, database).await {
                Ok(()) => Ok(connection),
                Err(why) => Err(refusal(address, handshake.as_ref(), &why)),
            }
        };
        self.in_time(address, opening).await
    }

    /// Makes one call on a connection of its own.
    pub(super) async fn ask(
        &self,
        address: &Address,
        access: Access<'_>,
        question: &Cmd,
    ) -> Result<Value> {
        let asking = async {
            let connection = self.open(address, access, 0, &Arc::default()).await?;
            let answer = connection.send(question, self.time_out).await;
            answer.map_err(|error| Failure::of(address, &error).error)
        };
        self.in_time(address, asking).await
    }

    /// Authenticates on a connection of its own, and subscribes to channels.
    pub(super) async fn subscribe(
        &self,
        address: &Address,
        access: Access<'_>,
        channels: &[&str],
    ) -> Result<PubSub> {
        let subscribing = async {
            let (stream, handshake) = reach(address, access.tls).await?;
            let subscribed = async {
                let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
                if let Some(user) = &access.login.user {
                    login = login.set_username(user);
                }
                if let Some(password) = &access.login.password {
                    login = login.set_password(password.0.as_str());
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
        step: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        timeout(self.time_out, step).await.unwrap_or_else(|_| {
            let text = format!("{address} did not answer in {} ms", self.time_out.as_millis());
            Err(BackendError::new(Fault::Unreachable, text))
        })
    }
}

/// Opens a stream, with TLS if configured.
async fn reach(address: &Address, tls: Option<&TlsClient>) -> Result<(Stream, Option<Handshake>)> {
    let failed = |why: io::Error| unreachable_because(address, &why);
    match address {
        Address::Unix(path) => {
            Ok((Stream::Unix(UnixStream::connect(path).await.map_err(failed)?), None))
        }
        Address::Tcp(host, port) => {
            let addresses = lookup_host((host.as_str(), *port)).await.map_err(failed)?;
            let stream = first_of(addresses).await.map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            let Some(tls) = tls else { return Ok((Stream::Tcp(stream), None)) };
            let connection = tls.connect(address, stream).await?;
            let handshake = connection.handshake.clone();
            Ok((Stream::Tls(Box::new(connection)), Some(handshake)))
        }
    }
}

/// Connects to whichever address answers first: one that is silent must not use up the time in which
/// another would answer.
async fn first_of(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut attempts: FuturesUnordered<_> = addresses.map(TcpStream::connect).collect();
    let mut problem = None;
    while let Some(attempt) = attempts.next().await {
        match attempt {
            Ok(stream) => return Ok(stream),
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.unwrap_or_else(|| io::Error::other("the name has no address")))
}

/// Why the server refused the connection.
fn refusal(address: &Address, handshake: Option<&Handshake>, why: &RedisError) -> BackendError {
    let is_lost = why.kind() == ErrorKind::Io;
    let refused = handshake.filter(|_| is_lost).and_then(|known| known.refusal(address));
    refused.unwrap_or_else(|| Failure::of(address, why).error)
}

impl Connection {
    fn over(stream: Stream, signals: Arc<Signals>) -> Self {
        let (calls, driver) = Multiplexer::new(Bounded::new(stream), signals.clone());
        let driver = AbortOnDrop::spawn(async move {
            driver.await;
            signals.note_lost();
        });
        Self { calls, _driver: driver }
    }

    /// Authenticates, selects the database, and sets the library name for `CLIENT LIST`.
    async fn greet(&self, login: &Login, database: u32) -> Result<(), RedisError> {
        let mut greeting = Pipeline::new();
        if login.user.is_some() || login.password.is_some() {
            // A `nopass` user accepts any password.
            let password = login.password.as_ref().map_or("", |password| &password.0);
            greeting.cmd("AUTH").arg(login.user.as_deref()).arg(password);
        }
        if database > 0 {
            greeting.cmd("SELECT").arg(database);
        }
        let needed = greeting.len();
        // Unknown before version 7.2, and optional.
        greeting.cmd("CLIENT").arg("SETINFO").arg("LIB-NAME").arg("spillgate");
        // Nobody else uses the connection yet, and opening it has a timeout.
        let (replies, _) = self.calls.call_all(&greeting, None, None).await?;
        for reply in replies.into_iter().take(needed) {
            reply.extract_error()?;
        }
        Ok(())
    }

    /// Makes a call outside of the queue. An error reply is an error.
    pub(super) async fn send(&self, call: &Cmd, time_out: Duration) -> Result<Value, RedisError> {
        Ok(self.calls.call(call, Some(time_out), None).await?.value)
    }

    /// Makes several calls in one write, with no other call between them.
    pub(super) async fn send_all(
        &self,
        calls: &Pipeline,
        time_out: Duration,
    ) -> Result<Vec<Value>, RedisError> {
        Ok(self.calls.call_all(calls, Some(time_out), None).await?.0)
    }

    /// Makes a call with a [timeout](RedisError::is_timeout), preceded by `ASKING` if `is_asking`.
    pub(super) async fn call(
        &self,
        call: &Cmd,
        is_asking: bool,
        time_out: Duration,
        permit: Option<Permit>,
    ) -> Result<Answer, RedisError> {
        if !is_asking {
            return self.calls.call(call, Some(time_out), permit).await;
        }
        let mut calls = Pipeline::new();
        calls.cmd("ASKING").add_command(call.clone());
        let (mut replies, took) = self.calls.call_all(&calls, Some(time_out), permit).await?;
        Ok(Answer { value: replies.pop().unwrap_or(Value::Nil).extract_error()?, took })
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// Somebody whose backlog is full, so that further connections are not answered, and those that
    /// fill it.
    async fn silent() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut filling = Vec::new();
        let moment = Duration::from_millis(100);
        while let Ok(stream) = timeout(moment, TcpStream::connect(address)).await {
            filling.push(stream.unwrap());
        }
        (address, listener, filling)
    }

    #[tokio::test]
    async fn an_address_that_is_silent_does_not_keep_from_one_that_answers() {
        let (silent, _listener, _filling) = silent().await;
        let refused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let live = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = live.local_addr().unwrap();
        for addresses in [vec![silent, at], vec![silent, refused, at], vec![at, silent]] {
            let stream = timeout(Duration::from_millis(900), first_of(addresses.into_iter())).await;
            assert_eq!(stream.unwrap().unwrap().peer_addr().unwrap(), at);
        }
        assert!(first_of([refused].into_iter()).await.is_err());
        assert!(first_of(std::iter::empty()).await.is_err());
    }
}
