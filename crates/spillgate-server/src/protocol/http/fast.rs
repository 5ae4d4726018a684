//! What a server is asked most: checks that arrive whole, and `GET /auth`.
//!
//! They are answered from the bytes that were read. A check that is in any way unusual, and
//! every other request, is left to hyper; whatever is asked at `/auth` is not, since hyper refuses
//! heads by itself, with statuses that a proxy does not take for a refusal.

mod auth_head;
mod check;
mod reply;

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use http::StatusCode;
use spillgate_net::{Activity, IdleTimeout, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use self::auth_head::{AuthHead, HeadBounds, Rest};
use self::check::Check;
use self::reply::Replies;
use super::body::expect_type;
use super::problem::Problem;
use super::reply::JSON;
use super::routes::{Level, Operation};
use super::{HttpServer, access, auth, check as checks};

/// Why requests were no longer answered here.
pub(super) enum Left {
    /// Something else was asked: it is to be read again.
    Other,
    /// The server is about to end.
    Shutdown,
    /// The client has gone, takes too long, or has been told that this was all.
    End,
}

/// Room for a few checks. What does not fit is not for here.
const ROOM: usize = 4 * 1024;

/// Once replies take so much they are sent before more is answered: the smallest request has a
/// reply twenty times as large.
const ENOUGH: usize = 16 * 1024;

/// How long the rest of a head may take when the server is about to end.
const LATE: Duration = Duration::from_secs(1);

/// Answers what clients of one connection ask most.
pub(super) struct Fast<'s> {
    pub(super) server: &'s HttpServer,
    pub(super) peer: Option<IpAddr>,
    pub(super) activity: &'s Activity,
}

impl Fast<'_> {
    /// Answers until there is something else.
    pub(super) async fn serve<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut Stream<&Activity, T>,
        idle_timeout: &mut IdleTimeout,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<Left> {
        let mut input = Vec::with_capacity(ROOM);
        let mut replies = Replies::default();
        let mut is_ending = false;
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
                () = idle_timeout.expired(self.activity) => return Ok(Left::End),
            }
            while !input.is_empty() {
                let used = self.answer_all(&input, &mut replies).await;
                input.drain(..used);
                if used == 0 && !is_ending && AuthHead::begins(&input) {
                    // In a box, like all that few connections ask for.
                    let rest =
                        self.rest_of_head(stream, &mut input, idle_timeout, shutdown.as_mut());
                    let (rest, is_late) = Box::pin(rest).await?;
                    is_ending = is_late;
                    match rest {
                        Rest::Whole => continue,
                        Rest::TooLarge(most) => self.refuse_large(&input, most, &mut replies),
                        Rest::Missing => return Ok(Left::End),
                    }
                } else if used == 0 {
                    stream.unread(&input);
                    return Ok(if is_ending { Left::Shutdown } else { Left::Other });
                }
                tokio::select! {
                    written = stream.write_all(replies.bytes()) => written?,
                    () = idle_timeout.expired(self.activity) => return Ok(Left::End),
                }
                if replies.are_last() {
                    return Ok(Left::End);
                }
                replies.clear();
            }
            if is_ending {
                return Ok(Left::Shutdown);
            }
            input.shrink_to(ROOM);
        }
    }

    /// Reads the rest of the head of a request for `/auth`. Tells also whether the server is
    /// about to end: then what has begun to arrive is not waited for as long as else.
    async fn rest_of_head<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut Stream<&Activity, T>,
        input: &mut Vec<u8>,
        idle_timeout: &mut IdleTimeout,
        shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<(Rest, bool)> {
        let bounds = match auth::takes_from(&self.server.app, self.peer) {
            true => HeadBounds::OF_PROXIES,
            false => HeadBounds::of_others(&self.server.bounds),
        };
        // It may have come together with the request before, and not been read since.
        self.activity.record_read();
        tokio::select! {
            biased;
            rest = AuthHead::read_rest(stream, input, bounds) => return Ok((rest?, false)),
            () = idle_timeout.expired(self.activity) => return Ok((Rest::Missing, false)),
            () = shutdown => {}
        }
        let rest = timeout(LATE, AuthHead::read_rest(stream, input, bounds)).await;
        Ok((rest.unwrap_or(Ok(Rest::Missing))?, true))
    }

    /// Answers requests at the front, and tells how many bytes they were.
    async fn answer_all(&self, input: &[u8], replies: &mut Replies) -> usize {
        let mut used = 0;
        while !replies.are_last() && replies.bytes().len() < ENOUGH {
            let rest = &input[used..];
            // While the server drains, the next response says that it is the last; of checks,
            // hyper's does.
            let is_draining = self.server.app.readiness().is_draining();
            let check = Check::parse(rest, &self.server.bounds).filter(|_| !is_draining);
            let (operation, status) = if let Some(check) = check {
                let _in_progress = Activity::begin_request(self.activity);
                used += check.length;
                (Operation::Check, self.answer_check(&check, replies).await)
            } else if let Some(head) = AuthHead::find(rest) {
                let _in_progress = Activity::begin_request(self.activity);
                used += head.length();
                (Operation::Auth, self.answer_auth(&head, is_draining, replies).await)
            } else {
                break;
            };
            self.server.stats.count(Some(operation), status);
        }
        used
    }

    async fn answer_check(&self, check: &Check<'_>, replies: &mut Replies) -> StatusCode {
        match self.check(check, replies.document()).await {
            Ok(()) => {
                replies.send_document();
                StatusCode::OK
            }
            Err(problem) => replies.send(&problem.reply()),
        }
    }

    async fn check(&self, check: &Check<'_>, document: &mut Vec<u8>) -> Result<(), Problem> {
        let access = self.server.app.access();
        access::check_host(&access, check.host)?;
        access::check_level(&access, Level::Client, || Ok(check.authorization))?;
        expect_type(check.content_type, JSON)?;
        checks::answer(self.server, check.body, document).await
    }

    async fn answer_auth(
        &self,
        head: &AuthHead<'_>,
        is_draining: bool,
        replies: &mut Replies,
    ) -> StatusCode {
        match head.parse() {
            Ok((parts, is_last)) => {
                // In a box: a connection that asks only for checks needs no room for it.
                let reply: Pin<Box<dyn Future<Output = _> + Send>> =
                    Box::pin(auth::answer(&self.server.app, self.peer, &parts));
                let reply = reply.await;
                // After a body that nobody has read there is no telling where the next begins.
                if is_last || is_draining || auth::has_body(&parts.headers) {
                    replies.send_last(reply)
                } else {
                    replies.send(&reply)
                }
            }
            Err(problem) => replies.send_last(auth::refuse(head.query(), problem)),
        }
    }

    fn refuse_large(&self, begin: &[u8], most: usize, replies: &mut Replies) {
        let problem = auth_head::too_large(most);
        let status = replies.send_last(auth::refuse(auth_head::query(begin), problem));
        self.server.stats.count(Some(Operation::Auth), status);
    }
}
