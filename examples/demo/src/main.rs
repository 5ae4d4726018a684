//! One limiter, three callers and a flood: what Spillgate does, in ten seconds.
//!
//! A steady, a bursty and a greedy caller call a limiter of "10/s burst 20". For
//! half of the time an attacker also sends 300,000 calls per second, each from an
//! address never seen before, into a table that is far too small for them. The
//! screen shows what each gets; in the end every promise is checked, and the
//! program fails if one was broken. (A limit on each key lets every new key in. To
//! limit all of them together is a second limiter's work: see `check_all`.)
//!
//! `cargo run --release -p demo` plays it by the real clock, with a thread for
//! each caller; `-- --fast` plays the same story by a [`ManualClock`], in no time
//! and with the same numbers every time.
//!
//! [`ManualClock`]: spillgate::ManualClock

mod acts;
mod callers;
mod frame;
mod memory;
mod moment;
mod promises;
mod screen;
mod story;
mod style;
mod summary;
mod tally;

use std::process::ExitCode;

use self::screen::Screen;
use self::story::Story;

const USAGE: &str = "usage: demo [--fast]

Plays for ten seconds and ends by itself.

  --fast   the same story by a clock that need not be waited for";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let fast = match arguments.as_slice() {
        [] => false,
        ["--fast"] => true,
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match play(fast) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the story, and tells whether all promises were kept.
fn play(fast: bool) -> Result<bool, Box<dyn std::error::Error>> {
    let mut screen = Screen::of_stdout(fast);
    let ending = if fast {
        Story::on_manual_clock()?.rehearse(&mut screen)?
    } else {
        Story::on_system_clock()?.perform(&mut screen)?
    };
    screen.write(&summary::text(&ending, screen.style()))?;
    Ok(ending.promises.iter().all(|promise| promise.kept))
}
