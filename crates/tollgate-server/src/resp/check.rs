use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use tollgate::Decision;
use tollgate_policy::store::Store;
use tollgate_policy::{Gate, Mode};

use super::codec::Args;
use super::error::{CommandError, quoted};
use super::integer::natural;
use super::reply::Five;

/// What `TG.CHECK` asks: the limits of a policy.
///
/// ```text
/// TG.CHECK limit key [cost]
/// TG.CHECK limit PARTS n part1 … partn [cost]
/// ```
///
/// The first form is for limits that are counted per one part, such as an address. The
/// second is for those counted per several, or per none (`PARTS 0`); a key that reads
/// `PARTS` is written `PARTS 1 PARTS`. The cost is 1 unless it is given, and 0 only looks.
/// The answer is that of [`Throttle`](super::Throttle); its last integer is -1 if what is
/// spent stays spent. A limit in shadow limits nobody. How long a shaper wants an allowed
/// call to wait is not told.
pub trait Checks: Send + Sync {
    /// Why there is no decision.
    type Error: Display;

    /// Spends `cost` under one limit, for a caller given by one value for each part of
    /// what the limit is counted per.
    fn check_limit(
        &self,
        limit: &str,
        parts: &[&str],
        cost: u64,
    ) -> impl Future<Output = Result<Decision, Self::Error>> + Send;

    /// True if a limit is in shadow: then it limits nobody, whatever it decides.
    fn is_in_shadow(&self, limit: &str) -> bool;
}

impl<S: Store> Checks for Gate<S> {
    type Error = tollgate_policy::Error;

    async fn check_limit(
        &self,
        limit: &str,
        parts: &[&str],
        cost: u64,
    ) -> Result<Decision, Self::Error> {
        Gate::check_limit(self, limit, parts, cost).await
    }

    fn is_in_shadow(&self, limit: &str) -> bool {
        self.policy().mode(limit) == Some(Mode::Shadow)
    }
}

impl<C: Checks> Checks for Arc<C> {
    type Error = C::Error;

    fn check_limit(
        &self,
        limit: &str,
        parts: &[&str],
        cost: u64,
    ) -> impl Future<Output = Result<Decision, Self::Error>> + Send {
        C::check_limit(self, limit, parts, cost)
    }

    fn is_in_shadow(&self, limit: &str) -> bool {
        C::is_in_shadow(self, limit)
    }
}

/// Carries out a command of at least three arguments.
pub(super) async fn run(checks: &impl Checks, args: Args<'_>) -> Result<Five, CommandError> {
    let limit = text("limit", args.at(1))?;
    let (first, count) = if args.is(2, "PARTS") { (4, count(args)?) } else { (2, 1) };
    let rest = args.skip(first);
    let cost = match rest.len().checked_sub(count) {
        Some(0) => 1,
        Some(1) => natural("cost", rest.at(count))?,
        Some(_) | None => return Err(CommandError::arity("tg.check")),
    };
    let parts: Result<Vec<_>, _> = rest.iter().take(count).map(|part| text("key", part)).collect();
    let decision = checks.check_limit(limit, &parts?, cost).await;
    let five = decision.map(Five::from).map_err(CommandError::new)?;
    if five.limited && checks.is_in_shadow(limit) {
        return Ok(Five { limited: false, retry_after: None, ..five });
    }
    Ok(five)
}

fn count(args: Args<'_>) -> Result<usize, CommandError> {
    let count = args.get(3).ok_or_else(|| CommandError::arity("tg.check"))?;
    // More than fit into a `usize` are more than were given.
    Ok(usize::try_from(natural("the number of parts", count)?).unwrap_or(usize::MAX))
}

/// Policies are text, and so is whatever they are asked about.
fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, CommandError> {
    std::str::from_utf8(bytes).map_err(|_| {
        CommandError::new(format_args!("{name} must be UTF-8, and '{}' is not", quoted(bytes)))
    })
}
