//! The fast path: complete checks, and `GET /auth`, parsed from the bytes that were read.
//!
//! Unusual checks and all other requests are left to hyper. Requests for `/auth` are not: hyper
//! refuses invalid heads with statuses that a proxy does not take for a refusal.

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

pub(super) enum Left {
    /// Another request, which is to be read again.
    Other,
    Shutdown,
    /// The client disconnected or timed out, or the last response was sent.
    End,
}

/// Room for a few checks. Larger ones are left to hyper.
const ROOM: usize = 4 * 1024;

/// Replies are sent once they take so many bytes: they may be twenty times as large as requests.
const ENOUGH: usize = 16 * 1024;

/// How long the rest of a head may take during shutdown.
const LATE: Duration = Duration::from_secs(1);

pub(super) struct Fast<'s> {
    pub(super) server: &'s HttpServer,
    pub(super) peer: Option<IpAddr>,
    pub(super) activity: &'s Activity,
}

impl Fast<'_> {
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
                    // Boxed: few connections need it.
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

    /// Reads the rest of a head for `/auth`, within a shorter time during shutdown. True if the
    /// server shuts down.
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
        // It may have been read together with the request before.
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

    /// Answers complete requests, and returns how many bytes they had.
    async fn answer_all(&self, input: &[u8], replies: &mut Replies) -> usize {
        let mut used = 0;
        while !replies.are_last() && replies.bytes().len() < ENOUGH {
            let rest = &input[used..];
            // While the server is draining, checks are left to hyper, which closes the connection.
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
                // Boxed: connections with checks only need no room for it.
                let reply: Pin<Box<dyn Future<Output = _> + Send>> =
                    Box::pin(auth::answer(&self.server.app, self.peer, &parts));
                let reply = reply.await;
                // After an unread body, it is unknown where the next request begins.
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
