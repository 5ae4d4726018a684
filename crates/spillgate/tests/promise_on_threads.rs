//! What threads are admitted together while quotas move is never too much.
//!
//! Time stands still while the threads run, and goes on between their rounds, so that each call has
//! a time. Which of the quotas of a round was in force for a call is not known: any of them.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use spillgate::{AlgorithmKind, Clock, Limiter, ManualClock, Quota, Timestamp};
use spillgate_testing::seeds;

use crate::promise::Key;

const THREADS: u64 = 4;
const ROUNDS: usize = 60;
const KEYS: [&str; 2] = ["ann", "bob"];

/// A generator of numbers, so that a failure can be repeated as far as threads allow.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn of<'s, T>(&mut self, all: &'s [T]) -> &'s T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// What one key was admitted.
#[derive(Default)]
struct Account {
    /// By round.
    admitted: Vec<u64>,
    /// What calls of one round got back in another.
    returned: HashMap<(usize, usize), u64>,
    /// The quotas that may have been in force, by round.
    quotas: Vec<Vec<Quota>>,
}

impl Account {
    fn expect_never_too_much(&self, kind: AlgorithmKind, times: &[Timestamp]) {
        for begin in 0..ROUNDS {
            let mut quotas: Vec<Quota> = Vec::new();
            for end in begin..ROUNDS {
                quotas.extend(&self.quotas[end]);
                let admitted: u64 = self.admitted[begin..=end].iter().sum();
                let within = |(call, back): &(usize, usize)| *call >= begin && *back <= end;
                let returned = self.returned.iter().filter(|(rounds, _)| within(rounds));
                let net = admitted - returned.map(|(_, amount)| amount).sum::<u64>();
                let from_before =
                    |(call, back): &(usize, usize)| *call < begin && (begin..=end).contains(back);
                let has_earlier = self.returned.keys().any(from_before);
                let most = most(kind, &quotas, has_earlier, times[end].since(times[begin]));
                assert!(
                    net <= most,
                    "{kind}: {net} of {most} in rounds {begin} to {end}: {quotas:?}"
                );
            }
        }
    }
}

/// What may be admitted in some time.
fn most(kind: AlgorithmKind, quotas: &[Quota], has_earlier: bool, time: Duration) -> u64 {
    use AlgorithmKind::{FirstHitWindow, FixedWindow, IntervalBucket, SlidingWindow};
    let period = |quota: &Quota| quota.period().unwrap_or(Duration::MAX);
    let longest = quotas.iter().map(period).max().unwrap_or_default();
    let time = if kind == IntervalBucket { time + longest } else { time };
    let refill = |quota: &Quota| {
        (u128::from(quota.amount()) * time.as_nanos()).div_ceil(period(quota).as_nanos()) as u64
    };
    let burst = quotas.iter().map(Quota::burst).max().unwrap_or_default();
    let is_window = matches!(kind, FixedWindow | FirstHitWindow | SlidingWindow);
    let bursts = if has_earlier || is_window { 2 } else { 1 };
    bursts * burst + quotas.iter().map(refill).max().unwrap_or_default()
}

fn run(kind: AlgorithmKind, seed: u64) {
    let texts = match kind {
        // Windows of one length.
        AlgorithmKind::FixedWindow
        | AlgorithmKind::FirstHitWindow
        | AlgorithmKind::SlidingWindow => ["100/min", "10/min", "1000/min", "50/min"],
        _ => ["100 per 1000s", "10 per 1000s", "20 per 10s", "50 per 100s"],
    };
    let all = texts.map(|text| text.parse::<Quota>().unwrap());
    let [base, gold, ..] = all;
    let clock = ManualClock::new(Timestamp::from_secs(1_700_000_000));
    let limiter = Limiter::<Key, _>::builder(base)
        .algorithm(kind)
        .capacity(50)
        .tier("gold", gold)
        .tier_of(|key: &Key| key.1)
        .clock(clock.clone())
        .build()
        .unwrap();
    let mut numbers = Numbers(0x9e37_79b9 + seed);
    let mut accounts: HashMap<&str, Mutex<Account>> =
        KEYS.map(|key| (key, Mutex::default())).into();
    let open: Vec<Mutex<Vec<_>>> = (0..THREADS).map(|_| Mutex::default()).collect();
    let (mut base, mut gold, mut times) = (base, gold, Vec::new());
    let mut owns: HashMap<&str, Quota> = HashMap::new();
    for round in 0..ROUNDS {
        clock.advance(Duration::from_secs(*numbers.of(&[0, 1, 7, 40, 300])));
        times.push(clock.now());
        // What is in force at first, and what comes into force.
        let moves: Vec<_> =
            (0..numbers.below(3)).map(|_| (numbers.below(4), *numbers.of(&all))).collect();
        let moved_key = *numbers.of(&KEYS);
        for (key, account) in &mut accounts {
            let account = account.get_mut().unwrap();
            account.admitted.push(0);
            let mut quotas = vec![base, gold];
            quotas.extend(owns.get(key));
            quotas.extend(moves.iter().map(|(_, quota)| *quota));
            account.quotas.push(quotas);
        }
        let act = |thread: u64| {
            let mut numbers = Numbers(seed * 1_000_003 + round as u64 * 101 + thread + 1);
            let mut open = open[thread as usize].lock().unwrap();
            for _ in 0..30 {
                let (key, cost) = (*numbers.of(&KEYS), 1 + numbers.below(12));
                let caller = Key(key, *numbers.of(&[None, Some("gold")]));
                let account = &accounts[key];
                match numbers.below(3) {
                    0 if limiter.check_n(&caller, cost).is_allowed() => {
                        account.lock().unwrap().admitted[round] += cost;
                    }
                    1 => {
                        if let Ok(reservation) = limiter.reserve_n(&caller, cost) {
                            account.lock().unwrap().admitted[round] += cost;
                            open.push((key, round, cost, reservation));
                        }
                    }
                    _ if !open.is_empty() => {
                        let place = numbers.below(open.len() as u64) as usize;
                        let (key, began, cost, reservation) = open.swap_remove(place);
                        let actual = numbers.below(cost + 1);
                        // Before: what it frees may be spent by others at once.
                        let mut account = accounts[key].lock().unwrap();
                        *account.returned.entry((began, round)).or_default() += cost - actual;
                        drop(account);
                        limiter.settle(reservation, actual);
                    }
                    _ => {}
                }
            }
        };
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let act = &act;
                scope.spawn(move || act(thread));
            }
            for (what, quota) in &moves {
                match what {
                    0 => limiter.set_quota(*quota).unwrap(),
                    1 => limiter.set_tier_quota("gold", *quota).unwrap(),
                    2 => limiter.set_override(&Key(moved_key, None), *quota).unwrap(),
                    _ => drop(limiter.remove_override(&Key(moved_key, None))),
                }
            }
        });
        for (what, quota) in moves {
            match what {
                0 => base = quota,
                1 => gold = quota,
                2 => drop(owns.insert(moved_key, quota)),
                _ => drop(owns.remove(moved_key)),
            }
        }
    }
    for account in accounts.values_mut() {
        account.get_mut().unwrap().expect_never_too_much(kind, &times);
    }
}

#[test]
fn threads_are_admitted_never_too_much_while_quotas_move() {
    for kind in AlgorithmKind::ALL {
        for seed in seeds(10) {
            run(kind, seed);
        }
    }
}
