//! `CLIENT`: about the connection.

use super::codec::{Args, Writer};
use super::error::{CommandError, quoted};
use super::session::{Session, name_like};

const SUBCOMMANDS: [(&str, usize, usize); 8] = [
    ("setname", 3, 3),
    ("getname", 2, 2),
    ("setinfo", 4, 4),
    ("id", 2, 2),
    ("info", 2, 2),
    ("list", 2, usize::MAX),
    ("no-evict", 3, 3),
    ("no-touch", 3, 3),
];

pub(super) fn run(
    session: &mut Session,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let found = SUBCOMMANDS.iter().find(|(name, ..)| args.is(1, name));
    let Some((name, fewest, most)) = found else {
        return Err(CommandError::unknown_subcommand("CLIENT", args.at(1)));
    };
    if !(*fewest..=*most).contains(&args.len()) {
        return Err(CommandError::arity(format_args!("client|{name}")));
    }
    match *name {
        "getname" if session.name.is_empty() => out.null(),
        "getname" => out.bulk(&session.name),
        "id" => out.integer(i64::try_from(session.id).unwrap_or(i64::MAX)),
        // A client is told of itself alone: what others are is none of its business.
        "info" | "list" => out.text(&line(session, out)),
        "setname" => {
            session.set_name(args.at(2))?;
            out.simple("OK");
        }
        "setinfo" => {
            set_info(args)?;
            out.simple("OK");
        }
        _ => {
            switch(args)?;
            out.simple("OK");
        }
    }
    Ok(())
}

/// The name and version of a client's library: looked at, and not kept.
fn set_info(args: Args<'_>) -> Result<(), CommandError> {
    let attribute = ["lib-name", "lib-ver"].into_iter().find(|name| args.is(2, name));
    let attribute = attribute.ok_or_else(|| {
        CommandError::new(format_args!("Unrecognized option '{}'", quoted(args.at(2))))
    })?;
    name_like(attribute, args.at(3)).map(drop)
}

/// Nothing is evicted for a client's sake, on or off.
fn switch(args: Args<'_>) -> Result<(), CommandError> {
    if args.is(2, "on") || args.is(2, "off") { Ok(()) } else { Err(CommandError::SYNTAX) }
}

fn line(session: &Session, out: &Writer) -> String {
    let Session { id, name, .. } = session;
    let peer = session.peer.map(|peer| peer.to_string()).unwrap_or_default();
    let age = session.since.elapsed().as_secs();
    let protocol = out.protocol.number();
    format!("id={id} addr={peer} name={name} age={age} db=0 user=default resp={protocol}\n")
}
