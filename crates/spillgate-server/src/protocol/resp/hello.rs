//! `HELLO` and `AUTH`: how a connection begins.

use spillgate_policy::store::Store;

use super::codec::{Args, Protocol, Writer};
use super::error::{CommandError, quoted};
use super::session::{Session, name_like};
use super::{Endpoint, info};

const WRONG_PASSWORD: CommandError =
    CommandError::coded("WRONGPASS invalid username-password pair or user is disabled.");

/// `AUTH [username] password`
pub(super) fn auth<S: Store>(
    endpoint: &Endpoint<S>,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let (user, password) = match args.get(2) {
        Some(password) => (args.at(1), password),
        None if !endpoint.has_password() && !endpoint.is_token(args.at(1)) => {
            return Err(CommandError::coded(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        None => (USER, args.at(1)),
    };
    session.is_operator = verify(endpoint, user, password)?;
    session.is_authenticated = true;
    out.simple("OK");
    Ok(())
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
///
/// All of it is done, or nothing is.
pub(super) fn hello<S: Store>(
    endpoint: &Endpoint<S>,
    session: &mut Session,
    args: Args<'_>,
    out: &mut Writer,
) -> Result<(), CommandError> {
    let protocol = args.get(1).map(protocol).transpose()?;
    let Options { credentials, name } = Options::parse(args.skip(2))?;
    if let Some((user, password)) = credentials {
        session.is_operator = verify(endpoint, user, password)?;
    } else if !session.is_authenticated {
        return Err(CommandError::coded(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client \
             and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        session.set_name(name)?;
    }
    session.is_authenticated = true;
    out.protocol = protocol.unwrap_or(out.protocol);
    greet(session, out);
    Ok(())
}

/// The only user there is.
const USER: &[u8] = b"default";

/// Returns whether the password is the token of operators, which is always a password, too.
fn verify<S: Store>(
    endpoint: &Endpoint<S>,
    user: &[u8],
    given: &[u8],
) -> Result<bool, CommandError> {
    let is_operator = endpoint.is_token(given);
    match user == USER && (is_operator || endpoint.is_password(given)) {
        true => Ok(is_operator),
        false => Err(WRONG_PASSWORD),
    }
}

fn protocol(version: &[u8]) -> Result<Protocol, CommandError> {
    match version {
        b"2" => Ok(Protocol::Resp2),
        b"3" => Ok(Protocol::Resp3),
        _ if !version.is_empty() && version.iter().all(u8::is_ascii_digit) => {
            Err(CommandError::coded("NOPROTO unsupported protocol version"))
        }
        _ => Err(CommandError::coded("ERR Protocol version is not an integer or out of range")),
    }
}

#[derive(Default)]
struct Options<'a> {
    credentials: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        while !args.is_empty() {
            if args.is(0, "AUTH") && args.len() > 2 {
                options.credentials = Some((args.at(1), args.at(2)));
                args = args.skip(3);
            } else if args.is(0, "SETNAME") && args.len() > 1 {
                name_like("Client names", args.at(1))?;
                options.name = Some(args.at(1));
                args = args.skip(2);
            } else {
                let option = quoted(args.at(0));
                return Err(CommandError::new(format_args!(
                    "Syntax error in HELLO option '{option}'"
                )));
            }
        }
        Ok(options)
    }
}

fn greet(session: &Session, out: &mut Writer) {
    out.map(7);
    let server = ["server", "redis", "version", info::REDIS_VERSION, "proto"];
    server.iter().for_each(|text| out.bulk(text));
    out.integer(out.protocol.number());
    out.bulk("id");
    out.integer(i64::try_from(session.id).unwrap_or(i64::MAX));
    let mode = ["mode", "standalone", "role", "master", "modules"];
    mode.iter().for_each(|text| out.bulk(text));
    out.array(0);
}
