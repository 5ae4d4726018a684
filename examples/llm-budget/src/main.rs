//! A budget of language model tokens, reserved before a call and settled after it.
//!
//! The cost of a language model call is known only when it has answered. So an estimate is reserved first, which keeps
//! concurrent calls from spending the same tokens, and is replaced by the actual cost afterwards. A call that took more
//! than is left puts its team into debt, and the next one waits until that is refilled. `llm-gateway` does the same over
//! HTTP.
//!
//! `cargo run -p llm-budget` runs on a clock of its own and takes no time at all.

use spillgate::{Error, Limiter, ManualClock};

/// A prompt, the tokens it is expected to take and those that it took.
const CALLS: [(&str, u64, u64); 5] = [
    ("summarise a page", 3_000, 2_100),
    ("translate a letter", 4_000, 4_000),
    ("explain a stack trace", 3_000, 6_500),
    ("write a haiku", 100, 60),
    ("read the whole archive", 50_000, 0),
];

fn main() -> Result<(), Error> {
    let clock = ManualClock::default();
    let budget = Limiter::<str>::builder("10_000/min").clock(clock.clone()).build()?;
    println!("The team may use {} tokens.", budget.quota());
    for (prompt, estimate, actual) in CALLS {
        call(&budget, &clock, prompt, estimate, actual);
    }
    Ok(())
}

/// Makes one call, as soon as the budget allows.
fn call(
    budget: &Limiter<str, ManualClock>,
    clock: &ManualClock,
    prompt: &str,
    estimate: u64,
    actual: u64,
) {
    println!("\n{prompt}: about {estimate} tokens");
    let reservation = loop {
        match budget.reserve_n("team", estimate) {
            Ok(reservation) => break reservation,
            Err(denied) => match denied.retry_after() {
                Some(wait) => {
                    println!("  {} left, so it waits {wait:?}", denied.remaining());
                    clock.advance(wait);
                }
                None => {
                    println!("  never: no more than {} fit at once", denied.limit());
                    return;
                }
            },
        }
    };
    budget.settle(reservation, actual);
    println!("  took {actual}; {} left", budget.peek("team").remaining());
}
