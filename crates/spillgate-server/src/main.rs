//! The `spillgate` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    spillgate_server::run(std::env::args_os())
}
