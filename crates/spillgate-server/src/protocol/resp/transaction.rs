//! `MULTI` … `EXEC`: several commands with one reply, as the pipelines of some clients send them.
//! They are executed in order, or at once if the store has to be waited for. Other connections go
//! on meanwhile: no command here depends on an earlier one.

use spillgate_policy::store::Store;

use super::Endpoint;
use super::codec::{Args, OwnedArgs, Writer};
use super::command::Command;
use super::error::CommandError;
use super::execute::{perform, report};
use super::pipeline::decide_together;
use super::session::Session;

#[derive(Debug, Default)]
pub(super) struct Transaction {
    queued: Vec<(Command, OwnedArgs)>,
    size: usize,
    has_failed: bool,
}

/// How much a connection may let the server remember until `EXEC`.
const MOST_COMMANDS: usize = 4096;
const MOST_BYTES: usize = 512 * 1024;

impl Transaction {
    /// True if a command waits for `EXEC`, and is not about the transaction itself.
    pub(super) fn delays(command: Command) -> bool {
        use Command as C;
        !matches!(command, C::Multi | C::Exec | C::Discard | C::Quit | C::Reset)
    }

    /// Adds a command, unless it has a long reply or changes the protocol.
    pub(super) fn queue(&mut self, command: Command, args: Args<'_>) -> Result<(), CommandError> {
        use Command as C;
        if !matches!(command, C::Throttle | C::Check | C::Ping | C::Echo) {
            self.fail();
            return Err(CommandError::coded(
                "ERR only CL.THROTTLE, SG.CHECK, PING and ECHO can be in a transaction",
            ));
        }
        let args = OwnedArgs::from(args);
        self.size += args.size();
        if self.queued.len() >= MOST_COMMANDS || self.size > MOST_BYTES {
            self.fail();
            return Err(CommandError::coded(
                "ERR the transaction is too long; send at most 4096 commands and 512 KiB, or \
                 a pipeline without a transaction",
            ));
        }
        self.queued.push((command, args));
        Ok(())
    }

    pub(super) fn memory(&self) -> usize {
        self.size
    }

    /// Notes that a command was refused, so that none is carried out.
    pub(super) fn fail(&mut self) {
        self.has_failed = true;
        // Nobody will ask for them.
        (self.queued, self.size) = (Vec::new(), 0);
    }
}

pub(super) fn multi(session: &mut Session, out: &mut Writer) -> Result<(), CommandError> {
    if session.transaction.is_some() {
        return Err(CommandError::coded("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Box::default());
    out.simple("OK");
    Ok(())
}

pub(super) fn discard(session: &mut Session, out: &mut Writer) -> Result<(), CommandError> {
    if session.transaction.take().is_none() {
        return Err(CommandError::coded("ERR DISCARD without MULTI"));
    }
    out.simple("OK");
    Ok(())
}

pub(super) async fn exec<S: Store>(
    endpoint: &Endpoint<S>,
    session: &mut Session,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let Some(transaction) = session.transaction.take() else {
        return Err(CommandError::coded("ERR EXEC without MULTI"));
    };
    if transaction.has_failed {
        return Err(CommandError::coded(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    out.array(transaction.queued.len());
    for run in transaction.queued.chunk_by(|(one, _), (next, _)| one.decides() && next.decides()) {
        match run {
            [(command, args)] if !command.decides() => {
                let done = perform(*command, endpoint, session, args.args(), out).await;
                report(done, session, out);
            }
            calls => {
                let calls = calls.iter().map(|(command, args)| (*command, args.args()));
                let calls: Vec<_> = calls.collect();
                // Boxed: every connection reserves room for the largest future it may wait for.
                Box::pin(decide_together(endpoint, session, &calls, out)).await;
            }
        }
    }
    Ok(())
}
