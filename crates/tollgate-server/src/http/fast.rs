//! Checks that arrive whole, one after the other: what a server is asked most.
//!
//! They are answered from the bytes that were read. The first request that is anything else,
//! or in any way unusual, and all that follow on its connection, are left to hyper.

mod head;
mod reply;

use std::future::Future;
use std::io;
use std::pin::Pin;

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use self::head::Check;
use self::reply::Replies;
use super::body::expect_type;
use super::problem::Problem;
use super::pulse::Pulse;
use super::reply::JSON;
use super::routes::{Level, Operation};
use super::stream::Stream;
use super::watch::Watch;
use super::{check, guard};
use crate::App;

/// Why checks were no longer answered here.
pub(super) enum Left {
    /// Something else was asked: it is to be read again.
    Other,
    /// The server is about to end.
    Shutdown,
    /// The client has gone, or takes too long.
    End,
}

/// Room for a few checks. What does not fit is not for here.
const ROOM: usize = 4 * 1024;

/// Answers checks until there is something else.
pub(super) async fn serve<T: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut Stream<&Pulse, T>,
    pulse: &Pulse,
    app: &App,
    watch: &mut Watch,
    mut shutdown: Pin<&mut impl Future<Output = ()>>,
) -> io::Result<Left> {
    let mut input = Vec::with_capacity(ROOM);
    let mut replies = Replies::default();
    loop {
        tokio::select! {
            // Shutdown first: a busy client would never let it have its turn.
            biased;
            () = shutdown.as_mut() => return Ok(Left::Shutdown),
            read = stream.read_buf(&mut input) => {
                if read? == 0 {
                    return Ok(Left::End);
                }
            }
            () = watch.run_out(pulse) => return Ok(Left::End),
        }
        if app.readiness().is_draining() {
            // The next response says that it is the last.
            stream.unread(&input);
            return Ok(Left::Other);
        }
        let used = answer_all(app, pulse, &input, &mut replies).await;
        if used > 0 {
            tokio::select! {
                written = stream.write_all(replies.bytes()) => written?,
                () = watch.run_out(pulse) => return Ok(Left::End),
            }
            replies.clear();
        }
        if used < input.len() {
            stream.unread(&input[used..]);
            return Ok(Left::Other);
        }
        input.clear();
    }
}

/// Answers the checks at the front, and tells how many bytes they were.
async fn answer_all(app: &App, pulse: &Pulse, input: &[u8], replies: &mut Replies) -> usize {
    let mut used = 0;
    while let Some(check) = Check::parse(&input[used..], &app.bounds) {
        let _at_work = Pulse::work(pulse);
        used += check.length;
        let status = match answer(app, &check, replies.document()).await {
            Ok(()) => {
                replies.send_document();
                StatusCode::OK
            }
            Err(problem) => replies.send(&problem.response()),
        };
        app.stats.count(Some(Operation::Check), status);
    }
    used
}

async fn answer(app: &App, check: &Check<'_>, document: &mut Vec<u8>) -> Result<(), Problem> {
    let access = app.access();
    guard::check_host(&access, check.host)?;
    guard::check_level(&access, Level::Client, || Ok(check.authorization))?;
    expect_type(check.content_type, JSON)?;
    check::answer(app, check.body, document).await
}
