use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{RedisError, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until};

use super::write_coalescing::WriteCoalescing;
use super::{Answer, Outbox, PendingReply, Permit, Signals, reply};

/// Writes calls and reads replies.
pub(super) struct Driver<S> {
    stream: S,
    outbox: Arc<Outbox>,
    coalescing: WriteCoalescing,
    /// The write buffer, and how much of it is written.
    output: Vec<u8>,
    written: usize,
    /// Bytes of an incomplete reply.
    input: Vec<u8>,
    /// Calls written, or being written.
    sent: VecDeque<Sent>,
    signals: Arc<Signals>,
    /// No call times out before this.
    earliest: Option<Instant>,
    /// Fires at that time, or earlier.
    timer: Pin<Box<Sleep>>,
    is_timing: bool,
    /// True if the deadline had passed at the last check.
    is_due: bool,
}

/// A call that has been written.
struct Sent {
    at: Instant,
    answers: usize,
    /// Replies so far, if there is more than one.
    values: Vec<Value>,
    time_out: Option<Duration>,
    /// `None` after it timed out.
    answer: Option<oneshot::Sender<Result<Answer, RedisError>>>,
    /// Held until the reply arrives, whether or not anybody waits for it.
    permit: Option<Permit>,
}

/// Bytes per read.
const CHUNK: usize = 16 * 1024;

/// Buffer capacity that is kept.
const KEPT: usize = 64 * 1024;

/// After a deadline the stream is polled once more, after this time: the system may have more to
/// deliver than fits into one poll.
const GRACE: Duration = Duration::from_millis(1);

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    pub(super) fn new(stream: S, outbox: Arc<Outbox>, signals: Arc<Signals>) -> Self {
        Self {
            stream,
            outbox,
            signals,
            coalescing: WriteCoalescing::default(),
            output: Vec::new(),
            written: 0,
            input: Vec::new(),
            sent: VecDeque::new(),
            earliest: None,
            timer: Box::pin(sleep_until(Instant::now())),
            is_timing: false,
            is_due: false,
        }
    }

    /// Reads everything that has arrived.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<(), RedisError> {
        loop {
            self.input.reserve(CHUNK);
            let read = pin!(self.stream.read_buf(&mut self.input)).poll(context);
            match read {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                Poll::Ready(Ok(_)) => self.take_answers()?,
                Poll::Ready(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// Delivers complete replies.
    fn take_answers(&mut self) -> Result<(), RedisError> {
        let (mut used, now) = (0, Instant::now());
        while let Some((value, length)) = reply::parse_reply(&self.input[used..])? {
            used += length;
            let Some(sent) = self.sent.front_mut() else {
                let text = "unexpected reply";
                return Err((redis::ErrorKind::Parse, text).into());
            };
            if sent.answers > 1 {
                sent.values.push(value);
                if sent.values.len() == sent.answers {
                    let values = std::mem::take(&mut sent.values);
                    self.answered(Value::Array(values), now);
                }
            } else {
                self.answered(value, now);
            }
        }
        self.input.drain(..used);
        if self.input.is_empty() && self.input.capacity() > KEPT {
            self.input = Vec::new();
        }
        Ok(())
    }

    fn answered(&mut self, value: Value, now: Instant) {
        let Some(Sent { at, answer, permit, .. }) = self.sent.pop_front() else { return };
        drop(permit);
        if let Some(answer) = answer {
            // The caller may have given up.
            let _ = answer.send(Ok(Answer { value, took: now.duration_since(at) }));
        }
    }

    /// Writes everything that the stream accepts.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<(), RedisError> {
        while self.written < self.output.len() || self.collect(context) {
            let rest = &self.output[self.written..];
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Poll::Ready(Ok(written)) => self.written += written,
                Poll::Ready(Err(error)) => return Err(error.into()),
            }
        }
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Ready(Err(error)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Takes queued calls. False if there are none to write now.
    fn collect(&mut self, context: &mut Context<'_>) -> bool {
        let mut outgoing = self.outbox.lock();
        if outgoing.calls.is_empty() {
            match &mut outgoing.driver {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            return false;
        }
        if !self.coalescing.is_ready(outgoing.bytes.len()) {
            // A task that wakes itself runs after those that are ready.
            context.waker().wake_by_ref();
            return false;
        }
        self.output.clear();
        self.output.shrink_to(KEPT);
        self.written = 0;
        std::mem::swap(&mut self.output, &mut outgoing.bytes);
        let at = Instant::now();
        for PendingReply { answers, time_out, answer, permit } in outgoing.calls.drain(..) {
            let (values, answer) = (Vec::new(), Some(answer));
            let sent = Sent { at, answers, values, time_out, answer, permit };
            self.earliest = self.earliest.into_iter().chain(sent.deadline()).min();
            self.sent.push_back(sent);
        }
        true
    }

    /// Times out calls. What has arrived was read before.
    fn poll_timer(&mut self, context: &mut Context<'_>) {
        loop {
            let Some(deadline) = self.earliest else { return };
            // A timer that fires early is left alone: resetting it per call would cost more.
            if !self.is_timing || (deadline < self.timer.deadline() && !self.is_due) {
                self.timer.as_mut().reset(deadline);
                self.is_timing = true;
            }
            if self.timer.as_mut().poll(context).is_pending() {
                return;
            }
            self.is_timing = false;
            let now = Instant::now();
            // The call it was set for may have been answered.
            self.earliest = self.deadline();
            if self.earliest.is_none_or(|deadline| deadline > now) {
                self.is_due = false;
            } else if !std::mem::replace(&mut self.is_due, true) {
                self.timer.as_mut().reset(now + GRACE);
                self.is_timing = true;
            } else {
                self.is_due = false;
                self.give_up(now);
            }
        }
    }

    /// The earliest deadline, not necessarily of the oldest call.
    fn deadline(&self) -> Option<Instant> {
        self.sent.iter().filter_map(Sent::deadline).min()
    }

    fn give_up(&mut self, now: Instant) {
        let is_up = |sent: &Sent| sent.deadline().is_some_and(|deadline| deadline <= now);
        for sent in self.sent.iter_mut().filter(|sent| is_up(sent)) {
            let late = Err(io::Error::from(io::ErrorKind::TimedOut).into());
            if sent.answer.take().is_some_and(|answer| answer.send(late).is_err()) {
                self.signals.note_abandoned();
            }
        }
        self.earliest = self.deadline();
    }
}

impl Sent {
    /// The deadline, unless it has none or has timed out.
    fn deadline(&self) -> Option<Instant> {
        self.answer.as_ref().and(self.time_out).map(|time_out| self.at + time_out)
    }
}

/// Completes when the connection ends.
impl<S: AsyncRead + AsyncWrite + Unpin> Future for Driver<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        let done = driver.poll_read(context).and_then(|()| driver.poll_write(context));
        if let Err(error) = done {
            for sent in driver.sent.drain(..) {
                sent.answer.into_iter().for_each(|answer| drop(answer.send(Err(error.clone()))));
            }
            return Poll::Ready(());
        }
        driver.poll_timer(context);
        Poll::Pending
    }
}

impl<S> Drop for Driver<S> {
    fn drop(&mut self) {
        let mut outgoing = self.outbox.lock();
        outgoing.is_closed = true;
        let calls = std::mem::take(&mut outgoing.calls);
        drop(outgoing);
        // Wakes their callers: the connection is lost.
        drop(calls);
    }
}
