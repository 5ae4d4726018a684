//! How long it takes to acquire and release a permit, beside an atomic counter, which is the
//! least that does it, and tokio's semaphore:
//! `cargo run --profile dist -p spillgate-bench --bin permits`.
//!
//! All take turns in every round, and each number is the median of its rounds, in nanoseconds of
//! wall time per acquisition, over all threads together.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use spillgate::{Concurrency, KeyedState};
use tokio::sync::Semaphore;

const ROUNDS: usize = 15;
const CALLS: u64 = 200_000;
const THREADS: [u64; 4] = [1, 2, 4, 16];
const LIMIT: u32 = 64;

/// Acquires and releases a permit of a key, and returns whether it got one.
type Call = Box<dyn Fn(u64) -> bool + Sync>;
type Peer = (&'static str, fn() -> Call);

fn counter() -> Call {
    let held = AtomicU32::new(0);
    Box::new(move |_| {
        let more = |held| (held < LIMIT).then_some(held + 1);
        let is_held = held.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok();
        if is_held {
            black_box(&held);
            held.fetch_sub(1, Ordering::Release);
        }
        is_held
    })
}

fn semaphore() -> Call {
    let free = Semaphore::new(LIMIT as usize);
    Box::new(move |_| black_box(free.try_acquire()).is_ok())
}

fn owned_semaphore() -> Call {
    let free = Arc::new(Semaphore::new(LIMIT as usize));
    Box::new(move |_| black_box(Arc::clone(&free).try_acquire_owned()).is_ok())
}

/// What a semaphore per key takes: a map of them, from which none is ever removed.
fn semaphores() -> Call {
    let by_key: DashMap<u64, Arc<Semaphore>, KeyedState> = DashMap::with_hasher(KeyedState::new());
    Box::new(move |key| {
        let known = by_key.get(&key).map(|free| Arc::clone(&free));
        let new = || Arc::clone(&by_key.entry(key).or_insert_with(|| Arc::new(Semaphore::new(64))));
        black_box(known.unwrap_or_else(new).try_acquire_owned()).is_ok()
    })
}

fn spillgate() -> Call {
    let calls: Concurrency<u64> = Concurrency::new(LIMIT);
    Box::new(move |key| black_box(calls.try_acquire(&key)).is_ok())
}

/// With one permit that is always held, as a busy service has.
fn spillgate_in_flight() -> Call {
    let calls: Concurrency<u64> = Concurrency::new(LIMIT);
    let held = calls.try_acquire(&0);
    Box::new(move |key| {
        black_box(&held);
        black_box(calls.try_acquire(&key)).is_ok()
    })
}

fn time(call: &Call, threads: u64, key: fn(u64, u64) -> u64) -> f64 {
    let barrier = Barrier::new(threads as usize);
    let run = |thread: u64| {
        barrier.wait();
        let begin = Instant::now();
        let granted = (0..CALLS).filter(|nth| call(key(thread, *nth))).count();
        assert!(granted > 0, "it grants nothing");
        (begin, Instant::now())
    };
    let times: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        others.into_iter().map(|other| other.join().expect("a run that ends")).collect()
    });
    let begin = times.iter().map(|time| time.0).min();
    let end = times.iter().map(|time| time.1).max();
    let wall = end.zip(begin).map_or(Duration::ZERO, |(end, begin)| end - begin);
    wall.as_nanos() as f64 / (CALLS * threads) as f64
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// One table: its peers by number of threads.
fn compare(title: &str, peers: &[Peer], key: fn(u64, u64) -> u64) {
    println!("\n| {title} | 1 thread | 2 | 4 | 16 |\n|---|---:|---:|---:|---:|");
    let calls: Vec<_> = peers.iter().map(|(_, make)| make()).collect();
    let mut cells = vec![Vec::new(); peers.len()];
    for threads in THREADS {
        let mut rounds = vec![Vec::new(); peers.len()];
        for round in 0..ROUNDS {
            for turn in 0..peers.len() {
                let peer = (round + turn) % peers.len();
                rounds[peer].push(time(&calls[peer], threads, key));
            }
        }
        let medians: Vec<_> = rounds.into_iter().map(median).collect();
        for (cells, nanos) in cells.iter_mut().zip(&medians) {
            cells.push(format!("{nanos:.0} ({:.1}×)", nanos / medians[0]));
        }
    }
    for ((name, _), cells) in peers.iter().zip(cells) {
        println!("| {name} | {} |", cells.join(" | "));
    }
}

fn main() {
    println!("Nanoseconds per acquisition and release, and times those of the first row.");
    let one_key: [Peer; 5] = [
        ("an atomic counter", counter),
        ("tokio::sync::Semaphore", semaphore),
        ("tokio::sync::Semaphore, owned", owned_semaphore),
        ("spillgate", spillgate),
        ("spillgate, one more in flight", spillgate_in_flight),
    ];
    compare("one key", &one_key, |_, _| 0);
    let by_key: [Peer; 2] = [("DashMap of semaphores", semaphores), ("spillgate", spillgate)];
    compare("a key per thread", &by_key, |thread, _| thread);
    compare("10,000 keys", &by_key, |thread, nth| (thread * 7_919 + nth * 31) % 10_000);
}
