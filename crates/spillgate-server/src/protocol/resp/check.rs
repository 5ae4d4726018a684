use std::fmt::{self, Display};
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use spillgate::{Decision, Quota};
use spillgate_policy::store::Store;
use spillgate_policy::{Error, Gate, LimitCheck, Mode, Outcome};
use spillgate_redis::Share;
use spillgate_redis::backend::Fault;
use spillgate_tower::SpillgateLayer;

use super::codec::Args;
use super::error::{CommandError, quoted};
use super::integer::natural;
use super::reply::Five;
use crate::AnyStore;

/// What `SG.CHECK` asks: the limits of a policy.
///
/// ```text
/// SG.CHECK limit key [cost]
/// SG.CHECK limit PARTS n part1 … partn [cost]
/// ```
///
/// The first form is for limits that are counted per one part, such as an address. The
/// second is for those counted per several, or per none (`PARTS 0`); a key that reads
/// `PARTS` is written `PARTS 1 PARTS`. The cost is 1 unless it is given, and 0 only looks.
/// The answer is that of [`Throttle`](super::Throttle); its last integer is -1 if what is
/// spent stays spent. In an outage that lets everyone pass, limit and remaining are 0. A limit
/// in shadow limits nobody. How long a shaper wants an allowed
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
    ) -> impl Future<Output = Result<Checked, Self::Error>> + Send;

    /// Decides about a key of `CL.THROTTLE`, if such keys are kept where the limits are. By
    /// default they are in the endpoint's own table.
    fn throttle(
        &self,
        _key: &[u8],
        quota: Quota,
        _quantity: u64,
    ) -> impl Future<Output = Throttled> + Send {
        ready(Throttled::Here(Share { quota, owed: Duration::ZERO }))
    }

    /// Hears what the endpoint's own table has decided about a key of `CL.THROTTLE`.
    fn throttled_here(&self, _key: &[u8], _quota: Quota, _decision: &Decision) {}

    /// How many questions are worth asking at once: one, if each is answered on the spot.
    fn at_once(&self) -> usize {
        1
    }

    /// True if there is no decision because more is asked than can be answered.
    fn is_overloaded(_error: &Self::Error) -> bool {
        false
    }
}

/// What became of a call of `CL.THROTTLE`.
#[derive(Clone, Copy, Debug)]
pub enum Throttled {
    /// It is decided elsewhere.
    There(Decision),
    /// It is to be decided by the endpoint's own table, by this quota and with what is owed.
    Here(Share),
    /// It was not decided, since more is asked than can be answered.
    Overloaded,
}

/// What one limit decided.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    /// The decision; `None` if everyone passes, since a limit that is
    /// [open](spillgate_policy::store::Outage::Open) could not be asked.
    pub decision: Option<Decision>,
    /// Whether it counts: a limit in shadow limits nobody, whatever it decides.
    pub mode: Mode,
}

/// An error of which clients are shown only what is meant for them.
#[derive(Debug)]
pub struct Shown(Error);

impl Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.for_clients())
    }
}

impl<S: Store> Checks for Gate<S> {
    type Error = Shown;

    async fn check_limit(&self, limit: &str, parts: &[&str], cost: u64) -> Result<Checked, Shown> {
        let outcome = self.decide(&LimitCheck { limit, values: parts, cost }).await;
        checked(&outcome.map_err(Shown)?)
    }

    fn is_overloaded(error: &Shown) -> bool {
        error.0.is_overloaded()
    }
}

/// Decides by the layer's gate, and counts what is decided.
impl<R: Send + Sync> Checks for SpillgateLayer<AnyStore, R> {
    type Error = Shown;

    async fn check_limit(&self, limit: &str, parts: &[&str], cost: u64) -> Result<Checked, Shown> {
        let check = LimitCheck { limit, values: parts, cost };
        // In memory it is decided at once, and on the stack: every connection has room for what it
        // may wait for.
        let decided =
            self.enforcer().try_decide(&check, |it| it.map(|it| checked(it)).map_err(Shown));
        match decided {
            Some(decided) => decided?,
            None => {
                let outcome = self.enforcer().decide(&check).boxed().await;
                checked(&outcome.map_err(Shown)?)
            }
        }
    }

    async fn throttle(&self, key: &[u8], quota: Quota, quantity: u64) -> Throttled {
        let whole = Share { quota, owed: Duration::ZERO };
        let Some(store) = self.gate().store().shared() else { return Throttled::Here(whole) };
        // In a box: every connection has room for what it may wait for.
        match Box::pin(store.throttle(key, quota, quantity)).await {
            Ok(decision) => Throttled::There(decision),
            Err(error) if error.fault() == Fault::Overloaded => Throttled::Overloaded,
            Err(_) => Throttled::Here(store.share(key, quota).unwrap_or(whole)),
        }
    }

    fn throttled_here(&self, key: &[u8], quota: Quota, decision: &Decision) {
        if let Some(store) = self.gate().store().shared() {
            store.throttled_here(key, quota, decision);
        }
    }

    fn at_once(&self) -> usize {
        self.gate().store().at_once()
    }

    fn is_overloaded(error: &Shown) -> bool {
        error.0.is_overloaded()
    }
}

impl<C: Checks> Checks for Arc<C> {
    type Error = C::Error;

    fn throttle(
        &self,
        key: &[u8],
        quota: Quota,
        quantity: u64,
    ) -> impl Future<Output = Throttled> + Send {
        C::throttle(self, key, quota, quantity)
    }

    fn throttled_here(&self, key: &[u8], quota: Quota, decision: &Decision) {
        C::throttled_here(self, key, quota, decision);
    }

    fn at_once(&self) -> usize {
        C::at_once(self)
    }

    fn is_overloaded(error: &Self::Error) -> bool {
        C::is_overloaded(error)
    }

    fn check_limit(
        &self,
        limit: &str,
        parts: &[&str],
        cost: u64,
    ) -> impl Future<Output = Result<Checked, Self::Error>> + Send {
        C::check_limit(self, limit, parts, cost)
    }
}

/// What the only limit of an outcome says; nothing if it is in shadow and its store failed.
fn checked(outcome: &Outcome<'_>) -> Result<Checked, Shown> {
    match outcome.limits().next() {
        Some(limit) => Ok(Checked { decision: Some(*limit.decision()), mode: limit.mode() }),
        None if outcome.shadow_error().is_some() => Err(Shown(Error::store("nothing was decided"))),
        None => Ok(Checked { decision: None, mode: Mode::Enforce }),
    }
}

/// Carries out a command of at least three arguments.
pub(super) async fn run<C: Checks>(checks: &C, args: Args<'_>) -> Result<Five, CommandError> {
    let limit = text("limit", args.at(1))?;
    let (first, count) = if args.is(2, "PARTS") { (4, count(args)?) } else { (2, 1) };
    let rest = args.skip(first);
    let cost = match rest.len().checked_sub(count) {
        Some(0) => 1,
        Some(1) => natural("cost", rest.at(count))?,
        Some(_) | None => return Err(CommandError::arity("sg.check")),
    };
    let parts: Result<Vec<_>, _> = rest.iter().take(count).map(|part| text("key", part)).collect();
    let checked = checks.check_limit(limit, &parts?, cost).await;
    let Checked { decision, mode } = checked.map_err(|error| match C::is_overloaded(&error) {
        true => CommandError::OVERLOADED,
        false => CommandError::new(error),
    })?;
    let five = decision.map_or(Five::UNDECIDED, Five::from);
    Ok(match mode {
        Mode::Enforce => five,
        Mode::Shadow => Five { limited: false, retry_after: None, ..five },
    })
}

fn count(args: Args<'_>) -> Result<usize, CommandError> {
    let count = args.get(3).ok_or_else(|| CommandError::arity("sg.check"))?;
    // More than fit into a `usize` are more than were given.
    Ok(usize::try_from(natural("the number of parts", count)?).unwrap_or(usize::MAX))
}

/// Policies are text, and so is whatever they are asked about.
fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, CommandError> {
    std::str::from_utf8(bytes).map_err(|_| {
        CommandError::new(format_args!("{name} must be UTF-8, and '{}' is not", quoted(bytes)))
    })
}
