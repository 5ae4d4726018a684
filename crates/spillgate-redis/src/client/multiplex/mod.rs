//! A connection that many calls share.

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

/// Where calls are left to be written: as they come, as many at a time as there are. Answers come in
/// that order.
///
/// The time of a call begins when it is written, and ends when its answer has arrived, even if
/// this process has yet to look at it: how busy we are ourselves is no fault of the server. So it
/// is not measured by those who wait, but by the task that reads and writes.
#[derive(Debug)]
pub(super) struct Multiplexer {
    outbox: Arc<Outbox>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) value: Value,
    /// How long it took after the call was written.
    pub(super) took: Duration,
}

/// What is shared with the task that reads and writes.
#[derive(Debug, Default)]
struct Outbox(Mutex<Outgoing>);

#[derive(Debug, Default)]
struct Outgoing {
    /// Calls, as they are written.
    bytes: Vec<u8>,
    calls: Vec<PendingReply>,
    /// Wakes the task, if it waits for calls.
    driver: Option<Waker>,
    is_closed: bool,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct PendingReply {
    /// How many answers there will be; all but one come as an array.
    answers: usize,
    time_out: Option<Duration>,
    answer: oneshot::Sender<Result<Answer, RedisError>>,
    permit: Option<Permit>,
}

impl Multiplexer {
    /// One over a stream, with what reads and writes until the connection or this ends.
    pub(super) fn new<S>(stream: S, signals: Arc<Signals>) -> (Self, impl Future<Output = ()>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let outbox = Arc::<Outbox>::default();
        (Self { outbox: outbox.clone() }, Driver::new(stream, outbox, signals))
    }

    /// Makes a call. An error that the server answers is an error, and so is an answer that has not
    /// come [in time](RedisError::is_timeout). Its place is free again when the answer has come, or
    /// the connection has ended; not when it is given up, since what was written stays.
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

    /// Makes several calls, in one write and with no other call between them.
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

/// The connection has ended.
fn lost() -> RedisError {
    io::Error::from(io::ErrorKind::BrokenPipe).into()
}

#[cfg(test)]
mod tests;
