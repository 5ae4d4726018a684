//! The `spillgate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    spillgate_server::run(std::env::args_os())
}
