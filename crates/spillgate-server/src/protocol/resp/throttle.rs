use std::time::Duration;

use spillgate::algorithm::{AnyAlgorithm, TokenBucket, Word};
use spillgate::{Clock, Decision, Error, KeyedState, Quota, Seed, SystemClock, Table, WhenFull};
use spillgate_redis::Share;

use super::ahead::AHEAD;
use super::codec::Args;
use super::error::CommandError;
use super::integer::{natural, positive};
use super::reply::Five;
use super::{Checks, Endpoint, Throttled};

/// `CL.THROTTLE key max_burst count period [quantity]`: a token bucket whose quota comes
/// with each call.
///
/// The bucket holds `max_burst + 1` and refills by `count` in `period` seconds. A call
/// takes `quantity`, 1 unless it is given, if there is as much; 0 only looks. The answer
/// is redis-cell's, five integers:
///
/// 1. 1 if the call is limited, 0 if it may go ahead,
/// 2. the limit, `max_burst + 1`,
/// 3. how much remains,
/// 4. seconds until the same call would pass; -1 if it was allowed, or if it never can be
///    because the quantity is above the limit,
/// 5. seconds until the bucket is full again.
///
/// Seconds are rounded up, so whoever waits that long does not come too early. (redis-cell
/// rounds up too, but drops less than a millisecond.)
///
/// # One key, several quotas
///
/// All that is kept of a key is the time at which its bucket is full again. A call with
/// other parameters finds that time, not a number of tokens: whoever has spent an hour's
/// worth stays limited for as long under a smaller quota too. Keys are bytes.
///
/// # Limits
///
/// The interval between two tokens is rounded up to a nanosecond, so `count` is at most
/// 10⁹ a second, and a full bucket takes at most 146 years to refill. Whatever is outside,
/// negative, or no integer, is answered with an error and spends nothing.
#[derive(Debug)]
pub struct Throttle<K = SystemClock> {
    /// `None` if nobody can ask.
    table: Option<Table>,
    clock: K,
    seed: Seed,
}

impl Throttle {
    /// For as many keys with something spent at once as the table has
    /// [room](Table::new) for.
    ///
    /// # Errors
    ///
    /// If there is no memory for a table of that capacity.
    pub fn new(capacity: usize) -> Result<Self, Error> {
        Self::with(capacity, WhenFull::Evict, KeyedState::new(), SystemClock)
    }
}

impl<K> Throttle<K> {
    /// With its own way of being full, hasher and clock.
    ///
    /// # Errors
    ///
    /// As for [`new`](Throttle::new).
    pub fn with(
        capacity: usize,
        when_full: WhenFull,
        hasher: KeyedState,
        clock: K,
    ) -> Result<Self, Error> {
        // Decides nothing: the table only needs to know that its words are times.
        let any_quota = Quota::per_second(1).build()?;
        let words = AnyAlgorithm::TokenBucket(TokenBucket::new(&any_quota)?);
        let table = Table::with_hasher(words, capacity, when_full, hasher)?;
        Ok(Self { table: Some(table), clock, seed: hasher.seed() })
    }

    /// Keeps no keys and takes no memory for them: for a server that does not speak the Redis
    /// protocol.
    pub fn off(hasher: KeyedState, clock: K) -> Self {
        Self { table: None, clock, seed: hasher.seed() }
    }

    /// The clock.
    pub fn clock(&self) -> &K {
        &self.clock
    }

    /// The seed under which keys are hashed, to be saved with the table. Whoever knows it can
    /// make keys that collide.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The table of what keys have spent, for snapshots and metrics, unless it is
    /// [off](Self::off).
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// Begins to load what calls will need that are about to be carried out: with more
    /// keys than the processor's caches hold, that is most of what a call waits for.
    pub(super) fn touch<'a>(&self, requests: impl Iterator<Item = Args<'a>>) {
        let Some(table) = &self.table else { return };
        let is_call = |args: &Args<'_>| args.is(0, "cl.throttle");
        let clients = requests.filter(is_call).map(|args| table.fingerprint(args.at(1)));
        // All are known before the first is loaded, so that no load waits for a hash.
        let mut few = [None; AHEAD];
        few.iter_mut().zip(clients).for_each(|(place, client)| *place = Some(client));
        few.into_iter().flatten().for_each(|client| table.prefetch(client));
    }

    fn decide(&self, key: &[u8], share: &Share, quantity: u64) -> Result<Decision, CommandError>
    where
        K: Clock,
    {
        let off = || CommandError::coded("ERR CL.THROTTLE is off, since this server keeps no keys");
        let table = self.table.as_ref().ok_or_else(off)?;
        let bucket = TokenBucket::new(&share.quota).map_err(CommandError::new)?;
        let (client, now) = (table.fingerprint(key), self.clock.now());
        if !share.owed.is_zero() {
            let full_at = now + share.owed;
            table.raise_at(client, |_| Word::from_bits(full_at.as_nanos()), now);
        }
        Ok(table.check_with_at(client, bucket, quantity, now))
    }
}

/// Carries out a command whose arity is right.
pub(super) async fn run<C: Checks, K: Clock>(
    endpoint: &Endpoint<C, K>,
    args: Args<'_>,
) -> Result<Five, CommandError> {
    let Call { key, quota, quantity } = Call::parse(args)?;
    let decision = match endpoint.checks.throttle(key, quota, quantity).await {
        Throttled::There(decision) => decision,
        Throttled::Here(share) => {
            let decision = endpoint.throttle.decide(key, &share, quantity)?;
            endpoint.checks.throttled_here(key, quota, &decision);
            decision
        }
        Throttled::Overloaded => return Err(CommandError::OVERLOADED),
    };
    Ok(if quantity > 0 { Five::from(decision) } else { look(decision) })
}

/// A look takes nothing, so it always passes. But if more was spent under a larger quota than
/// this one holds, it shows when that will be over, as in redis-cell.
fn look(decision: Decision) -> Five {
    let five = Five::from(decision);
    match decision.overdrawn_for().filter(|beyond| !beyond.is_zero()) {
        Some(beyond) => Five { limited: true, retry_after: Some(beyond), ..five },
        None => five,
    }
}

/// What a call asks for.
struct Call<'a> {
    key: &'a [u8],
    quota: Quota,
    quantity: u64,
}

impl<'a> Call<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let max_burst = natural("max_burst", args.at(2))?;
        let count = positive("count", args.at(3))?;
        let period = positive("period", args.at(4))?;
        let quantity = args.get(5).map_or(Ok(1), |text| natural("quantity", text))?;
        // No overflow: these numbers are below 2⁶³.
        let quota = Quota::per(count, Duration::from_secs(period)).burst(max_burst + 1);
        let quota = quota.build().map_err(CommandError::new)?;
        Ok(Self { key: args.at(1), quota, quantity })
    }
}
