use std::time::Duration;

use smallvec::{SmallVec, smallvec};
use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Layout, Word};

use crate::backend::{Announcement, BackendError, Entry, Exchange, Fault, Member, Op, Result};
use crate::{Fingerprint, State};

/// The largest TTL in milliseconds: Redis refuses times beyond 2⁶³.
pub(super) const LONGEST: u128 = Timestamp::MAX.as_nanos() as u128 / 1_000_000;

/// An argument of a script; inline for the most frequent one, a token bucket.
pub type Argument = SmallVec<[u8; 96]>;

/// The operations, numbered as in the script.
#[derive(Clone, Copy)]
enum Action {
    Look = 0,
    Refuse = 1,
    Spend = 2,
    Take = 3,
    Debit = 4,
    Refund = 5,
    Reset = 6,
    GiveBack = 7,
    Read = 8,
}

/// The amounts of an operation.
type Amounts = SmallVec<[u64; 4]>;

/// The argument of the [script](crate::script::RUN) for one entry.
///
/// # Errors
///
/// If the script does not implement the algorithm.
pub fn encode_entry(entry: &Entry) -> Result<Argument> {
    let Entry { terms, algorithm, fresh, op, .. } = entry;
    let layout = algorithm.layout();
    let number = number_of(layout).ok_or_else(|| {
        let text =
            format!("the Redis store does not support {}; use another algorithm", terms.kind);
        BackendError::new(Fault::Nonsense, text)
    })?;
    let op = match *op {
        Op::Debit { amount, most } => Op::Debit { amount, most: most.min(algorithm.deepest()) },
        op => op,
    };
    let (action, amounts) = match layout {
        Layout::Bucket { interval, span, .. } => {
            // Only a token bucket may start with less than its burst.
            let has_start = matches!(algorithm, AnyAlgorithm::TokenBucket(_));
            of_bucket(op, interval, span, if has_start { fresh.to_bits() } else { 0 })
        }
        _ => of_counter(op),
    };
    let is_shadow = matches!(op, Op::Spend { is_shadow: true, .. });
    let is_kept = terms.is_override || matches!(layout, Layout::Bucket { refills: false, .. });

    let mut argument = Argument::from_slice(&terms.to_bytes());
    put(&mut argument, &[fresh.to_bits()]);
    argument.extend([action as u8, u8::from(is_shadow), u8::from(is_kept), number]);
    put_layout(&mut argument, layout);
    put(&mut argument, &amounts);
    Ok(argument)
}

/// The layout, numbered as in the script; `None` if it is unknown there.
fn number_of(layout: Layout) -> Option<u8> {
    Some(match layout {
        Layout::Bucket { refills: true, .. } => 0,
        Layout::Bucket { refills: false, .. } => 1,
        Layout::IntervalBucket { .. } => 2,
        Layout::FixedWindow { .. } => 3,
        Layout::SlidingWindow { .. } => 4,
        _ => return None,
    })
}

/// The operation on a bucket's word. Amounts are given as refill times, which are hard to compute
/// in Lua.
fn of_bucket(op: Op, interval: u64, span: u64, start: u64) -> (Action, Amounts) {
    let price = |amount: u64| amount.saturating_mul(interval);
    match op {
        Op::Read => (Action::Read, smallvec![]),
        op if writes_nothing(op) => (Action::Look, smallvec![]),
        Op::Spend { cost, .. } => match span.checked_sub(price(cost)) {
            Some(room) => (Action::Spend, smallvec![price(cost), room]),
            // It costs more than the burst.
            None => (Action::Refuse, smallvec![]),
        },
        Op::Take { least, most } => (Action::Take, smallvec![least.max(1), most, interval, span]),
        Op::Debit { amount, most } => (Action::Debit, smallvec![price(amount), price(most)]),
        Op::GiveBack { amount, spent } => {
            // Later than any refill.
            let spent = spent.map_or(u64::MAX, Word::to_bits);
            (Action::Refund, smallvec![price(amount), start, spent])
        }
        Op::Reset => (Action::Reset, smallvec![start]),
        Op::Look => (Action::Look, smallvec![]),
    }
}

/// The operation on a counter's word. A spend is a take of exactly the cost.
fn of_counter(op: Op) -> (Action, Amounts) {
    match op {
        Op::Read => (Action::Read, smallvec![]),
        op if writes_nothing(op) => (Action::Look, smallvec![]),
        Op::Spend { cost, .. } => (Action::Take, smallvec![cost, cost]),
        Op::Take { least, most } => (Action::Take, smallvec![least.max(1), most]),
        Op::Debit { amount, most } => (Action::Debit, smallvec![amount, most]),
        Op::GiveBack { amount, spent: None } => (Action::Refund, smallvec![amount]),
        Op::GiveBack { amount, spent: Some(spent) } => {
            (Action::GiveBack, smallvec![amount, spent.to_bits()])
        }
        Op::Reset => (Action::Reset, smallvec![]),
        Op::Look => (Action::Look, smallvec![]),
    }
}

/// True if the amount is zero.
fn writes_nothing(op: Op) -> bool {
    matches!(
        op,
        Op::Spend { cost: 0, .. } | Op::Debit { amount: 0, .. } | Op::GiveBack { amount: 0, .. }
    )
}

/// The parameters of a counter. Those of a bucket are in its amounts.
fn put_layout(argument: &mut Argument, layout: Layout) {
    match layout {
        Layout::IntervalBucket { quantum, count_bits, period, amount, burst } => {
            argument.push(count_bits as u8);
            put(argument, &[quantum, period, amount, burst]);
        }
        Layout::FixedWindow { quantum, count_bits, length, limit } => {
            argument.push(count_bits as u8);
            put(argument, &[quantum, length, limit]);
        }
        Layout::SlidingWindow { quantum, count_bits, limit } => {
            argument.push(count_bits as u8);
            put(argument, &[quantum, limit]);
        }
        _ => {}
    }
}

fn put(argument: &mut Argument, numbers: &[u64]) {
    numbers.iter().for_each(|number| argument.extend(number.to_be_bytes()));
}

/// Replaces the clock of Redis and the margin of TTLs: an extra argument, for tests only.
#[must_use]
pub fn override_clock(now: Timestamp, margin: Duration) -> Argument {
    let mut argument = Argument::new();
    put(&mut argument, &[now.as_nanos(), margin.as_millis() as u64]);
    argument
}

/// The arguments of an [exchange](crate::script::EXCHANGE).
#[must_use]
pub fn exchange(exchange: &Exchange) -> [Argument; 3] {
    let bytes = |state: &Option<State>| {
        state.as_ref().map_or_else(Argument::new, |state| Argument::from_slice(&state.to_bytes()))
    };
    let expires = exchange.expires.map_or_else(Argument::new, millis);
    [bytes(&exchange.old), bytes(&exchange.new), expires]
}

/// A TTL in milliseconds: at least one, since Redis refuses zero.
#[must_use]
pub fn millis(lifetime: Duration) -> Argument {
    let millis = lifetime.as_nanos().div_ceil(1_000_000).clamp(1, LONGEST);
    Argument::from_slice(millis.to_string().as_bytes())
}

/// A time to live in microseconds, no shorter than it should be.
pub(super) fn micros(lifetime: Duration) -> Argument {
    let micros = lifetime.as_nanos().div_ceil(1_000).clamp(1, LONGEST * 1_000);
    Argument::from_slice(micros.to_string().as_bytes())
}

/// The arguments of an [announcement](crate::script::ANNOUNCE).
#[must_use]
pub fn announce(announcement: &Announcement) -> [Argument; 4] {
    let Announcement { joins, leaves, lifetime, lists } = announcement;
    let micros = lifetime.as_micros().min(LONGEST);
    let flag: &[u8] = if *lists { b"1" } else { b"" };
    [
        joins.as_ref().map_or_else(Argument::new, member),
        leaves.as_ref().map_or_else(Argument::new, member),
        Argument::from_slice(micros.to_string().as_bytes()),
        Argument::from_slice(flag),
    ]
}

/// The arguments of the [script](crate::script::PREFIXES) that counts prefixes.
#[must_use]
pub fn prefixes(own: &str, lifetime: Duration) -> [Argument; 2] {
    let micros = lifetime.as_micros().min(LONGEST).to_string();
    [own, micros.as_str()].map(|text| Argument::from_slice(text.as_bytes()))
}

fn member(member: &Member) -> Argument {
    let mut argument = Argument::from_slice(member.node.as_bytes());
    argument.extend(member.fingerprint.map(Fingerprint::to_bytes).into_iter().flatten());
    argument
}
