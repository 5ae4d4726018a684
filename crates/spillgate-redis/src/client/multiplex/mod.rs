//! A connection shared by many calls (pipelining).

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use redis::{Cmd, Pipeline, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use self::driver::Driver;
use super::queue::Permit;
use super::signals::Signals;

mod driver;
mod reply;
mod write_coalescing;

pub use self::reply::parse_reply;

/// Queues calls to be written as they come. Replies arrive in that order.
///
/// The time of a call runs from its write to the arrival of its reply, even if this process reads
/// it later: a busy client is not the server's fault. So the driver measures it, not the caller.
#[derive(Debug)]
pub(super) struct Multiplexer {
    outbox: Arc<Outbox>,
}

/// A reply.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Value,
    /// Time since the call was written.
    pub(super) took: Duration,
}

/// Shared with the driver.
#[derive(Debug, Default)]
struct Outbox(Mutex<Outgoing>);

#[derive(Debug, Default)]
struct Outgoing {
    /// Serialised calls.
    bytes: Vec<u8>,
    calls: Vec<PendingReply>,
    /// Wakes the driver if it waits for calls.
    driver: Option<Waker>,
    is_closed: bool,
}

/// A call that waits for its reply.
#[derive(Debug)]
struct PendingReply {
    /// The number of replies; several are returned as an array.
    answers: usize,
    time_out: Option<Duration>,
    answer: oneshot::Sender<Result<Answer, RedisError>>,
    permit: Option<Permit>,
}

impl Multiplexer {
    /// A multiplexer over a stream, and the driver that runs until either ends.
    pub(super) fn new<S>(stream: S, signals: Arc<Signals>) -> (Self, impl Future<Output = ()>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let outbox = Arc::<Outbox>::default();
        (Self { outbox: outbox.clone() }, Driver::new(stream, outbox, signals))
    }

    /// Makes a call. An error reply and a [timeout](RedisError::is_timeout) are errors. The permit
    /// is released when the reply arrives or the connection ends; not when the caller gives up,
    /// since the server still works on it.
    pub(super) async fn call(
        &self,
        call: &Cmd,
        time_out: Option<Duration>,
        permit: Option<Permit>,
    ) -> Result<Answer, RedisError> {
        let answer =
            self.enqueue((1, time_out, permit), |bytes| call.write_packed_command(bytes))?;
        let Answer { value, took } = answer.await.map_err(|_| lost())??;
        Ok(Answer { value: value.extract_error()?, took })
    }

    /// Makes several calls in one write, with no other call between them.
    pub(super) async fn call_all(
        &self,
        calls: &Pipeline,
        time_out: Option<Duration>,
        permit: Option<Permit>,
    ) -> Result<(Vec<Value>, Duration), RedisError> {
        let packed = calls.get_packed_pipeline();
        let write = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&packed);
        let answer = self.enqueue((calls.len(), time_out, permit), write)?;
        let Answer { value, took } = answer.await.map_err(|_| lost())??;
        match value {
            Value::Array(values) if calls.len() != 1 => Ok((values, took)),
            value => Ok((vec![value], took)),
        }
    }

    fn enqueue(
        &self,
        (answers, time_out, permit): (usize, Option<Duration>, Option<Permit>),
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<oneshot::Receiver<Result<Answer, RedisError>>, RedisError> {
        let (sender, answer) = oneshot::channel();
        let mut outgoing = self.outbox.lock();
        if outgoing.is_closed {
            return Err(lost());
        }
        write(&mut outgoing.bytes);
        outgoing.calls.push(PendingReply { answers, time_out, answer: sender, permit });
        let driver = outgoing.driver.take();
        drop(outgoing);
        driver.into_iter().for_each(Waker::wake);
        Ok(answer)
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection is lost.
fn lost() -> RedisError {
    io::Error::from(io::ErrorKind::BrokenPipe).into()
}

#[cfg(test)]
mod tests;
