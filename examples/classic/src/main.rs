//! The classic interface: register a bucket per caller, then ask whether a request is allowed.
//!
//! Every caller has its own algorithm and numbers, so each gets a [`Limiter`]. Where callers share a quota, or a few of
//! them, one limiter with tiers and overrides is enough for all: a caller then costs 26 bytes instead of a kilobyte or
//! two.
//!
//! `cargo run -p classic` runs on a clock of its own and takes no time at all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use spillgate::{AlgorithmKind, Clock, Error, Limiter, ManualClock, Quota, QuotaBuilder};

/// A bucket that fills: each request takes a token out of it.
struct TokenBucket {
    capacity: u64,
    /// Tokens a second.
    refill_rate: u64,
}

/// A bucket that leaks: each request pours a drop into it, if it does not run over. With the
/// same numbers it decides as a [`TokenBucket`] does, seen from the other side.
struct LeakyBucket {
    capacity: u64,
    /// Drops a second.
    leak_rate: u64,
}

/// What a client can be registered with.
struct Bucket {
    algorithm: AlgorithmKind,
    quota: QuotaBuilder,
}

impl From<TokenBucket> for Bucket {
    fn from(bucket: TokenBucket) -> Self {
        let quota = Quota::per_second(bucket.refill_rate).burst(bucket.capacity);
        Self { algorithm: AlgorithmKind::TokenBucket, quota }
    }
}

impl From<LeakyBucket> for Bucket {
    fn from(bucket: LeakyBucket) -> Self {
        let quota = Quota::per_second(bucket.leak_rate).burst(bucket.capacity);
        Self { algorithm: AlgorithmKind::LeakyBucket, quota }
    }
}

struct Request<'a> {
    client_id: &'a str,
}

/// Can be shared by any number of threads.
struct RateLimiter<C> {
    clock: C,
    clients: RwLock<HashMap<String, Arc<Limiter<(), C>>>>,
}

impl<C: Clock + Clone> RateLimiter<C> {
    fn new(clock: C) -> Self {
        Self { clock, clients: RwLock::default() }
    }

    /// Registers a caller with a full bucket, or replaces its bucket.
    ///
    /// # Errors
    ///
    /// If the bucket holds nothing, or nothing flows.
    fn register_client(&self, id: &str, bucket: impl Into<Bucket>) -> Result<(), Error> {
        let Bucket { algorithm, quota } = bucket.into();
        let limiter = Limiter::builder(quota)
            .algorithm(algorithm)
            .clock(self.clock.clone())
            .capacity(1)
            .build()?;
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        clients.insert(id.to_owned(), Arc::new(limiter));
        Ok(())
    }

    /// Is the request allowed? Callers that were never registered always are.
    fn allow(&self, request: &Request<'_>) -> bool {
        let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        let limiter = clients.get(request.client_id).map(Arc::clone);
        // Limiters need no lock: release it before the decision.
        drop(clients);
        limiter.is_none_or(|limiter| limiter.check(&()).is_allowed())
    }
}

fn main() -> Result<(), Error> {
    let clock = ManualClock::default();
    let limiter = RateLimiter::new(clock.clone());
    limiter.register_client("tokens", TokenBucket { capacity: 3, refill_rate: 1 })?;
    limiter.register_client("leaks", LeakyBucket { capacity: 2, leak_rate: 4 })?;

    println!("Each sends five requests. So many are allowed:");
    for (pause, expected) in [(0, [3, 2, 5]), (1, [1, 2, 5]), (9, [3, 2, 5])] {
        clock.advance(Duration::from_secs(pause));
        let allowed = ["tokens", "leaks", "not registered"]
            .map(|client_id| (0..5).filter(|_| limiter.allow(&Request { client_id })).count());
        let [tokens, leaks, others] = allowed;
        println!("  {pause} s later: tokens {tokens}, leaks {leaks}, not registered {others}");
        assert_eq!(allowed, expected);
    }

    println!("Eight threads send 1,000 requests each for a client who may send 500:");
    limiter.register_client("crowd", TokenBucket { capacity: 500, refill_rate: 1 })?;
    let allowed = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let passed = (0..1_000).filter(|_| limiter.allow(&Request { client_id: "crowd" }));
                // Relaxed: the end of the scope orders the sum before it is read.
                allowed.fetch_add(passed.count() as u64, Ordering::Relaxed);
            });
        }
    });
    let allowed = allowed.into_inner();
    println!("  {allowed} passed");
    assert_eq!(allowed, 500);
    Ok(())
}
