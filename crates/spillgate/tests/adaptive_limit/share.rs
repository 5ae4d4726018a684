//! Limits that are a share of all calls.

use proptest::prelude::*;
use spillgate::adaptive::{AdaptiveLimit, Ending, Priority, PriorityClass};

use super::{Script, anyone, at, ms};

fn share(start: f64) -> AdaptiveLimit {
    AdaptiveLimit::share(Script::default(), 0.1).start(start).build()
}

proptest! {
    /// Of any calls in a row the share goes ahead, one more or one less.
    #[test]
    fn any_calls_in_a_row_have_their_share(percent in 10_u32..=100, skip in 0_usize..50, take in 1_usize..500) {
        let share_of = f64::from(percent) / 100.0;
        let upstream = share(share_of);
        let goes = |()| upstream.try_acquire_at(anyone(), at(0)).is_ok();
        let all: Vec<bool> = std::iter::repeat_n((), skip + take).map(goes).collect();
        let went = all[skip..].iter().filter(|goes| **goes).count() as f64;
        prop_assert!((went - share_of * take as f64).abs() <= 1.0 + 1e-6, "{went} of {take}");
    }

    /// Whoever asks first, and takes it only if the answer is yes, gets the same share: also if
    /// several ask at once.
    #[test]
    fn peeking_first_costs_nobody_its_share(percent in 10_u32..=100, at_once in 1_usize..5) {
        let share_of = f64::from(percent) / 100.0;
        let upstream = share(share_of);
        let mut went = 0;
        for _ in 0..400 {
            let answers: Vec<_> = (0..at_once).map(|_| upstream.peek_at(anyone(), at(0))).collect();
            for answer in answers {
                match answer {
                    Ok(()) => went += usize::from(upstream.try_acquire_at(anyone(), at(0)).is_ok()),
                    Err(_) => upstream.refuse_at(anyone(), at(0)),
                }
            }
        }
        let all = 400 * at_once;
        let (least, most) = (share_of * all as f64 / at_once as f64, share_of * all as f64 + 1.0);
        prop_assert!((least - 1.0..=most).contains(&(went as f64)), "{went} of {all}");
        prop_assert_eq!(upstream.status().refused as usize, all - went);
    }
}

#[test]
fn a_whole_share_lets_everyone_through() {
    let upstream = share(1.0);
    let held: Vec<_> = (0..1_000).map(|_| upstream.try_acquire_at(anyone(), at(0))).collect();
    assert!(held.iter().all(Result::is_ok));
    assert_eq!((upstream.status().in_flight, upstream.status().refused), (1_000, 0));
}

#[test]
fn something_always_goes_through() {
    for min in [f64::NAN, -1.0, 0.0] {
        let upstream = AdaptiveLimit::share(Script::default(), min).start(0.0).build();
        let mut calls = (0..200).map(|_| upstream.try_acquire_at(anyone(), at(0)));
        assert!(calls.any(|call| call.is_ok()), "with a minimum of {min}");
    }
}

#[test]
fn a_share_by_priority_is_the_share_of_the_highest() {
    let script = Script::default();
    let upstream = AdaptiveLimit::share(script.clone(), 0.1).start(0.5).by_priority(true).build();
    let class = |high| if high { PriorityClass::High } else { PriorityClass::Low };
    let mut went = [0, 0];
    for call in 0..4_000_u64 {
        let (high, now) = (call % 4 == 0, at(call));
        let permit = upstream.try_acquire_at(Priority::new(class(high), 50), now);
        // After the first window, the histogram of arrivals is known.
        went[usize::from(high)] += u32::from(call >= 1_100 && permit.is_ok());
        permit.into_iter().for_each(|mut permit| permit.record_latency_at(Ending::Ok, ms(1), now));
    }
    assert!(script.steps() >= 2);
    let [low, high] = went;
    assert_eq!(high, 725, "all of high priority");
    // Half of all: 1,450.
    assert!((700..=750).contains(&low), "{low}");
}

#[test]
fn a_whole_share_lets_everyone_through_whatever_their_priority() {
    let script = Script::default();
    let upstream = AdaptiveLimit::share(script.clone(), 0.1).by_priority(true).build();
    upstream.record_n_at(Ending::Ok, ms(1), 10, at(0));
    (0..100).for_each(|_| drop(upstream.try_acquire_at(anyone(), at(500))));
    upstream.record_at(Ending::Ok, ms(1), at(1_000));
    assert_eq!(script.steps(), 1);
    let low = Priority::new(PriorityClass::Sheddable, 0);
    assert!(upstream.try_acquire_at(low, at(1_001)).is_ok());
}
