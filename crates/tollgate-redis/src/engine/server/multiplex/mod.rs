//! A connection that many calls share.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use redis::{Cmd, Pipeline, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use self::driver::Driver;

mod driver;
mod gather;
mod reply;

pub use self::reply::answer;

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
struct Outbox(Mutex<Letters>);

#[derive(Debug, Default)]
struct Letters {
    /// Calls, as they are written.
    bytes: Vec<u8>,
    calls: Vec<Call>,
    /// Wakes the task, if it waits for calls.
    driver: Option<Waker>,
    is_closed: bool,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct Call {
    /// How many answers there will be; all but one come as an array.
    answers: usize,
    time_out: Option<Duration>,
    answer: oneshot::Sender<Result<Answer, RedisError>>,
}

impl Multiplexer {
    /// One over a stream, with what reads and writes until the connection or this ends.
    pub(super) fn new<S>(stream: S) -> (Self, impl Future<Output = ()>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let outbox = Arc::<Outbox>::default();
        (Self { outbox: outbox.clone() }, Driver::new(stream, outbox))
    }

    /// Makes a call. An error that the server answers is an error, and so is an answer that has not
    /// come [in time](RedisError::is_timeout).
    pub(super) async fn call(
        &self,
        call: &Cmd,
        time_out: Option<Duration>,
    ) -> Result<Answer, RedisError> {
        let answer = self.leave(1, time_out, |bytes| call.write_packed_command(bytes))?;
        let Answer { value, took } = answer.await.map_err(|_| lost())??;
        Ok(Answer { value: value.extract_error()?, took })
    }

    /// Makes several calls, in one write and with no other call between them.
    pub(super) async fn call_all(
        &self,
        calls: &Pipeline,
        time_out: Option<Duration>,
    ) -> Result<(Vec<Value>, Duration), RedisError> {
        let packed = calls.get_packed_pipeline();
        let answer = self.leave(calls.len(), time_out, |bytes| bytes.extend_from_slice(&packed))?;
        let Answer { value, took } = answer.await.map_err(|_| lost())??;
        match value {
            Value::Array(values) if calls.len() != 1 => Ok((values, took)),
            value => Ok((vec![value], took)),
        }
    }

    fn leave(
        &self,
        answers: usize,
        time_out: Option<Duration>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<oneshot::Receiver<Result<Answer, RedisError>>, RedisError> {
        let (sender, answer) = oneshot::channel();
        let mut letters = self.outbox.lock();
        if letters.is_closed {
            return Err(lost());
        }
        write(&mut letters.bytes);
        letters.calls.push(Call { answers, time_out, answer: sender });
        let driver = letters.driver.take();
        drop(letters);
        driver.into_iter().for_each(Waker::wake);
        Ok(answer)
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection has ended.
fn lost() -> RedisError {
    io::Error::from(io::ErrorKind::BrokenPipe).into()
}

#[cfg(test)]
mod tests;
