//! The calls of `calls.c`, in Rust.

use std::ffi::CString;
use std::hint::black_box;
use std::time::Instant;

use spillgate::{Decision, Limiter};

const KEYS: usize = 1000;
const AMPLE: &str = "1000000/s burst 100000000";

type Row = (&'static str, &'static str, fn(&Limiter<[u8]>, &[CString], usize));

const ROWS: &[Row] = &[
    ("allowed", AMPLE, allow),
    ("allowed, key ends with NUL", AMPLE, |limiter, keys, count| {
        for call in 0..count {
            let key = black_box(keys[call % KEYS].as_ptr());
            #[expect(unsafe_code, reason = "the length is what the row is about")]
            // SAFETY: a string that ends with NUL.
            let key = unsafe { std::ffi::CStr::from_ptr(key) };
            black_box(limiter.check(key.to_bytes()).is_allowed());
        }
    }),
    ("denied", "1/h", allow),
    ("check, whole decision", AMPLE, check),
    ("check, whole decision, denied", "1/h", check),
    ("reserve and settle", AMPLE, |limiter, keys, count| {
        for call in 0..count {
            if let Ok(reservation) = limiter.reserve_n(black_box(keys[call % KEYS].as_bytes()), 3) {
                let _ = black_box(limiter.settle(reservation, 2));
            }
        }
    }),
];

fn allow(limiter: &Limiter<[u8]>, keys: &[CString], count: usize) {
    for call in 0..count {
        let key = black_box(keys[call % KEYS].as_bytes());
        black_box(limiter.check_n(key, black_box(1)).is_allowed());
    }
}

fn check(limiter: &Limiter<[u8]>, keys: &[CString], count: usize) {
    for call in 0..count {
        let decision = limiter.check_n(black_box(keys[call % KEYS].as_bytes()), black_box(1));
        let _ = black_box(whole(&decision));
    }
}

/// Everything that a decision of the C interface has.
fn whole(decision: &Decision) -> impl Sized {
    (
        (decision.verdict(), decision.is_table_full(), decision.limit(), decision.remaining()),
        (decision.reset_after(), decision.idle_after(), decision.wait(), decision.window()),
    )
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [row, count] = &arguments[..] else {
        return ROWS.iter().for_each(|(name, ..)| println!("{name}"));
    };
    let (_, quota, run) = ROWS.iter().find(|(name, ..)| name == row).unwrap();
    let count = count.parse().unwrap();
    let limiter = Limiter::new(*quota).unwrap();
    let keys: Vec<_> =
        (0..KEYS).map(|key| CString::new(format!("203.0.113.{key}")).unwrap()).collect();
    allow(&limiter, &keys, KEYS);
    let begin = Instant::now();
    run(&limiter, &keys, count);
    println!("{:.2}", begin.elapsed().as_nanos() as f64 / count as f64);
}
