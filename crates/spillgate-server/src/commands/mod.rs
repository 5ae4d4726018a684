//! The subcommands of `spillgate`.

mod ban;
mod check_config;
mod completions;
mod diff;
mod escape;
mod explain;
mod list;
mod man;
mod override_;
mod proxy;
mod remote;
mod replay;
mod schema;
mod serve;
mod style;
mod table;
mod terms;
mod top;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Rate limiting for programs in any language
///
/// Try it: start a server, and query it from another terminal
///
///   spillgate serve
///   curl --json '{"limit":"api","key":"203.0.113.7"}' http://127.0.0.1:8390/v1/check
///   redis-cli -p 6390 CL.THROTTLE user:42 15 30 60
#[derive(Parser)]
#[command(name = "spillgate", version, verbatim_doc_comment)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Proxy(Box<proxy::Proxy>),
    CheckConfig(check_config::CheckConfig),
    Diff(diff::Diff),
    Explain(explain::Explain),
    Replay(Box<replay::Replay>),
    List(list::List),
    Override(override_::Override),
    #[command(name = "ban")]
    Bans(ban::Bans),
    Schema(schema::Schema),
    Top(top::Top),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs a subcommand; the first argument is the program's name. Prints one line per problem.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // This may be help, which is no failure.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let failure = match arguments.command {
        Command::Diff(_) => ExitCode::from(diff::FAILURE),
        _ => ExitCode::FAILURE,
    };
    arguments.command.run().unwrap_or_else(|error| {
        error.to_string().lines().for_each(|line| eprintln!("spillgate: {line}"));
        failure
    })
}

impl Command {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self {
            Self::Diff(diff) => return diff.run(),
            Self::Serve(serve) => serve.run(),
            Self::Proxy(proxy) => proxy.run(),
            Self::CheckConfig(check) => check.run(),
            Self::Explain(explain) => explain.run(),
            Self::Replay(replay) => replay.run(),
            Self::List(list) => list.run(),
            Self::Override(own) => own.run(),
            Self::Bans(bans) => bans.run(),
            Self::Schema(schema) => schema.run(),
            Self::Top(top) => top.run(),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints to a reader that may have stopped reading, as `head` does.
fn print(text: &str) -> Result<(), Box<dyn Error>> {
    match std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
