//! Executes one request.

use std::fmt::Write;

use spillgate_policy::store::Store;
use spillgate_policy::{Decided, LimitCheck, Outcome, Question};

use super::check::CheckArgs;
use super::codec::{Args, Protocol, Writer};
use super::command::{Command, Spec};
use super::error::{CommandError, quoted};
use super::reply::ThrottleReply;
use super::session::Session;
use super::transaction::{self, Transaction};
use super::{
    Endpoint, bans, check, client, config, docs, hello, info, permits, reports, throttle, top,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Continue,
    /// Requests that have arrived wait until replies are read.
    Wait,
    /// It ends once the replies are sent.
    Close,
}

pub(super) async fn execute<S: Store>(
    endpoint: &Endpoint<S>,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Writer,
) -> Flow {
    if args.is_empty() {
        return Flow::Continue;
    }
    session.tally.commands += 1;
    let done = match (admit(session, args), &mut session.transaction) {
        (Ok(command), Some(transaction)) if Transaction::delays(command) => {
            transaction.queue(command, args).map(|()| out.simple("QUEUED"))
        }
        (Ok(Command::Exec), _) => transaction::exec(endpoint, session, out).await,
        (Ok(Command::Quit), _) => {
            out.simple("OK");
            return Flow::Close;
        }
        (Ok(command), _) => perform(command, endpoint, session, args, out).await,
        (Err(error), transaction) => {
            transaction.iter_mut().for_each(|transaction| transaction.fail());
            Err(error)
        }
    };
    report(done, session, out);
    Flow::Continue
}

pub(super) fn report(done: Result<(), CommandError>, session: &mut Session, out: &mut Writer) {
    if let Err(error) = done {
        session.tally.errors += 1;
        out.error(error);
    }
}

/// Executes a command outside of transactions.
pub(super) async fn perform<S: Store>(
    command: Command,
    endpoint: &Endpoint<S>,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    if command.decides() {
        return decide(command, endpoint, args)
            .await
            .map(|reply| write_decision(reply, session, out));
    }
    // Boxed: every connection reserves room for the largest future it may wait for.
    match command {
        Command::Acquire => Box::pin(permits::acquire(endpoint, args, out)).await,
        Command::Renew => Box::pin(permits::renew(endpoint, args, out)).await,
        Command::Release => Box::pin(permits::release(endpoint, args, out)).await,
        Command::Strike => Box::pin(bans::strike(endpoint, args, out)).await,
        Command::Ban => Box::pin(bans::ban(endpoint, args, out)).await,
        Command::Lift => Box::pin(bans::lift(endpoint, args, out)).await,
        command => about(command, endpoint, session, args, out),
    }
}

pub(super) async fn decide<S: Store>(
    command: Command,
    endpoint: &Endpoint<S>,
    args: Args<'_>,
) -> Result<ThrottleReply, CommandError> {
    if command == Command::Throttle {
        let question = throttle::question(args)?;
        return ask(endpoint, &question, |outcome| Ok(throttle::reply(question.cost, outcome)))
            .await;
    }
    let CheckArgs { limit, parts, cost } = CheckArgs::parse(args)?;
    ask(endpoint, &LimitCheck::new(limit, &parts, cost), check::reply).await
}

/// Decides a question without waiting if the store can.
async fn ask<S: Store, Q: Question>(
    endpoint: &Endpoint<S>,
    question: &Q,
    reply: impl Fn(&Outcome<'_>) -> Result<ThrottleReply, CommandError>,
) -> Result<ThrottleReply, CommandError> {
    let enforcer = &endpoint.enforcer;
    if let Some(done) = enforcer.try_decide(question, |decided| reply(decided?.whole())) {
        return done;
    }
    // Boxed: every connection reserves room for the largest future it may wait for.
    reply(Box::pin(enforcer.decide(question)).await?.whole())
}

/// The command that a request is for, if the client may call it so.
pub(super) fn admit(session: &Session, args: Args<'_>) -> Result<Command, CommandError> {
    let spec = Spec::find(args.at(0)).ok_or_else(|| unknown(args))?;
    if !spec.takes(args.len()) {
        return Err(CommandError::arity(spec.name));
    }
    if !session.is_authenticated && !spec.is_open() {
        return Err(CommandError::coded("NOAUTH Authentication required."));
    }
    if spec.is_admin() && !session.is_operator {
        return Err(CommandError::coded(
            "NOPERM only operators may call this; authenticate with the server's token: \
             AUTH TOKEN",
        ));
    }
    Ok(spec.command)
}

pub(super) fn write_decision(reply: ThrottleReply, session: &mut Session, out: &mut Writer) {
    let tally = &mut session.tally;
    *(if reply.limited { &mut tally.limited } else { &mut tally.allowed }) += 1;
    reply.write(out);
}

fn about<S: Store>(
    command: Command,
    endpoint: &Endpoint<S>,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    match command {
        Command::Ping => match args.get(1) {
            Some(message) => out.bulk(message),
            None => out.simple("PONG"),
        },
        Command::Echo => out.bulk(args.at(1)),
        Command::Hello => hello::hello(endpoint, session, args, out)?,
        Command::Auth => hello::auth(endpoint, session, args, out)?,
        Command::Client => client::run(session, args, out)?,
        Command::Select => select(args.at(1), out)?,
        Command::Commands => docs::run(args, out)?,
        Command::Config => config::run(args, out)?,
        Command::Info => info::run(endpoint, args, out),
        Command::Report => reports::run(endpoint, args, out)?,
        Command::Top => top::run(endpoint, session, args, out)?,
        Command::Bans => bans::list(endpoint, out),
        Command::Reset => {
            session.name.clear();
            session.transaction = None;
            session.is_authenticated = endpoint.is_open();
            session.is_operator = false;
            out.protocol = Protocol::Resp2;
            out.simple("RESET");
        }
        Command::Multi => transaction::multi(session, out)?,
        Command::Discard => transaction::discard(session, out)?,
        // Carried out by `perform` and `execute`.
        _ => {}
    }
    Ok(())
}

fn select(index: &[u8], out: &mut Writer) -> Result<(), CommandError> {
    match std::str::from_utf8(index).ok().and_then(|index| index.parse::<i64>().ok()) {
        Some(0) => out.simple("OK"),
        Some(_) => return Err(CommandError::coded("ERR DB index is out of range")),
        None => {
            return Err(CommandError::coded("ERR value is not an integer or out of range"));
        }
    }
    Ok(())
}

/// In the words of Redis.
fn unknown(args: Args<'_>) -> CommandError {
    // Enough to see what was meant.
    const LONGEST: usize = 128;
    let mut text = format!("unknown command '{}', with args beginning with: ", quoted(args.at(0)));
    let longest = text.len() + LONGEST;
    for arg in args.skip(1).iter() {
        if text.len() >= longest {
            break;
        }
        // Writing to memory does not fail.
        let _ = write!(text, "'{}' ", quoted(arg));
    }
    CommandError::new(text)
}
