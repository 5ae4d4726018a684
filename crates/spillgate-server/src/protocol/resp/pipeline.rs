//! Pipelines on a store that has to be waited for: they take about as long as one request.

use spillgate_policy::store::Store;

use super::Endpoint;
use super::codec::{Args, Request, Writer};
use super::command::Command;
use super::execute::{Flow, admit, decide, execute, report, write_decision};
use super::session::Session;
use crate::protocol::join_bounded;

/// Executes requests, adjacent decisions at once, and adds their lengths to `used`. Returns why it
/// stopped, if it did.
pub(super) async fn pipeline<S: Store>(
    endpoint: &Endpoint<S>,
    session: &mut Session,
    requests: &[Request<'_>],
    used: &mut usize,
    out: &mut Writer,
) -> Option<Flow> {
    let mut rest = requests;
    while let Some(next) = rest.first() {
        // Adjacent decisions are answered together, so this may be exceeded a little.
        if out.bytes().len() >= endpoint.backlog() {
            return Some(Flow::Wait);
        }
        let calls = calls(session, rest);
        let (begun, left) = rest.split_at(calls.len().max(1));
        *used += begun.iter().map(|request| request.length).sum::<usize>();
        rest = left;
        if calls.is_empty() {
            if execute(endpoint, session, next.args, out).await == Flow::Close {
                return Some(Flow::Close);
            }
        } else {
            session.tally.commands += calls.len() as u64;
            decide_together(endpoint, session, &calls, out).await;
        }
    }
    None
}

/// Carries out commands that decide, and answers them in their order.
pub(super) async fn decide_together<S: Store>(
    endpoint: &Endpoint<S>,
    session: &mut Session,
    calls: &[(Command, Args<'_>)],
    out: &mut Writer,
) {
    let decided = calls.iter().map(|(command, args)| decide(*command, endpoint, *args)).collect();
    for reply in join_bounded(decided, endpoint.concurrency()).await {
        let done = reply.map(|reply| write_decision(reply, session, out));
        report(done, session, out);
    }
}

/// The requests at the front that decide, and are carried out now.
fn calls<'a>(session: &Session, requests: &[Request<'a>]) -> Vec<(Command, Args<'a>)> {
    let call = |request: &Request<'a>| {
        let command = admit(session, request.args).ok()?;
        let decides = command.decides() && session.transaction.is_none();
        decides.then_some((command, request.args))
    };
    requests.iter().map_while(call).collect()
}
