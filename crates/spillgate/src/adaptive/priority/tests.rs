use std::time::Duration;

use super::{Priority, PriorityClass, Shedding, Standing};
use crate::Timestamp;

/// How many of a hundred calls of each priority, in turn, are below the cut.
fn below(shedding: &Shedding, priority: Priority) -> usize {
    (0..100).filter(|_| shedding.arrive(priority) == Standing::Below).count()
}

fn normal(level: u8) -> Priority {
    Priority::new(PriorityClass::Normal, level)
}

fn high(level: u8) -> Priority {
    Priority::new(PriorityClass::High, level)
}

fn arrive(shedding: &Shedding, priorities: impl Iterator<Item = Priority>) {
    for priority in priorities {
        let _ = shedding.arrive(priority);
    }
}

#[test]
fn the_lowest_levels_are_below_the_cut() {
    let shedding = Shedding::new();
    arrive(&shedding, (0..100).flat_map(|level| [normal(level); 10]));
    shedding.step(0.7);
    assert_eq!((below(&shedding, normal(0)), below(&shedding, normal(29))), (100, 100));
    assert_eq!((below(&shedding, normal(30)), below(&shedding, normal(99))), (0, 0));
}

#[test]
fn one_level_alone_is_below_in_part_and_evenly() {
    let shedding = Shedding::new();
    arrive(&shedding, std::iter::repeat_n(normal(7), 1000));
    shedding.step(0.75);
    let calls: Vec<bool> =
        (0..400).map(|_| shedding.arrive(normal(7)) == Standing::Below).collect();
    for four in calls.chunks(4) {
        assert_eq!(four.iter().filter(|below| **below).count(), 1);
    }
}

#[test]
fn nobody_is_below_while_all_are_served_and_before_anyone_came() {
    let shedding = Shedding::new();
    shedding.step(0.1);
    assert_eq!(below(&shedding, normal(0)), 0, "nothing is known of who comes");
    shedding.step(1.0);
    assert_eq!(below(&shedding, normal(0)), 0);
    shedding.step(0.5);
    assert!(below(&shedding, normal(0)) > 0);
    for garbage in [1.0, 2.0, f64::NAN, f64::INFINITY] {
        shedding.step(garbage);
        assert_eq!(below(&shedding, normal(0)), 0);
    }
}

#[test]
fn peeking_counts_nothing_and_agrees() {
    let shedding = Shedding::new();
    arrive(&shedding, std::iter::repeat_n(normal(7), 1000));
    shedding.step(0.3);
    for _ in 0..100 {
        let peeked = shedding.peek(normal(7));
        assert_eq!(peeked, shedding.peek(normal(7)));
        assert_eq!(peeked, shedding.arrive(normal(7)));
    }
}

#[test]
fn classes_above_the_shed_one_may_exceed_the_limit_by_what_their_load_allows() {
    let extra = |share| {
        let shedding = Shedding::new();
        arrive(
            &shedding,
            (0..100).flat_map(|level| [[normal(level); 8], [high(level); 8]]).flatten(),
        );
        arrive(&shedding, (0..100).map(|level| Priority::new(PriorityClass::Critical, level)));
        shedding.step(share);
        let of = |priority| match shedding.peek(priority) {
            Standing::Above(extra) => extra,
            Standing::Within | Standing::Below => 0,
        };
        (of(normal(99)), of(high(0)), of(Priority::new(PriorityClass::Critical, 0)))
    };
    // Nine of seventeen calls are above the normal class.
    assert_eq!(extra(0.9), (0, 12, 12));
    assert_eq!(extra(0.6), (0, 7, 12));
    assert_eq!(extra(0.4), (0, 0, 12), "calls of high priority are shed, so it is not above");
    assert_eq!(extra(0.01), (0, 0, 0), "all classes are shed");
}

#[test]
fn room_is_bounded() {
    assert_eq!(Standing::Above(12).room(20, 500), 32);
    assert_eq!(Standing::Above(12).room(20, 25), 25);
    assert_eq!(Standing::Within.room(20, 25), 20);
    assert_eq!(Standing::Below.room(20, 25), 15);
    assert_eq!(Standing::Below.room(2, 25), 1);
    assert_eq!(Standing::Below.room(1, 25), 1, "one call always may");
    assert_eq!(Standing::Above(12).room(u32::MAX, u32::MAX), u32::MAX);
}

#[test]
fn a_mix_that_changes_is_known_after_one_busy_window() {
    let shedding = Shedding::new();
    arrive(&shedding, std::iter::repeat_n(high(50), 3000));
    shedding.step(0.33);
    assert!(below(&shedding, high(50)) > 50);
    arrive(&shedding, std::iter::repeat_n(high(50), 500));
    arrive(&shedding, std::iter::repeat_n(normal(50), 2400));
    shedding.step(0.33);
    assert!(matches!(shedding.arrive(high(50)), Standing::Above(_)));
}

#[test]
fn levels_of_callers_are_even_and_change_by_the_hour() {
    let now = Timestamp::from_secs(1_700_000_000);
    let level = |caller, now| Priority::of_caller(PriorityClass::Normal, caller, now).level();
    let mut counts = [0u32; 100];
    for caller in 0..100_000 {
        counts[usize::from(level(caller, now))] += 1;
    }
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");

    let hour = Duration::from_secs(3_600);
    let same = (0..10_000).filter(|&caller| level(caller, now) == level(caller, now + hour));
    assert!((50..150).contains(&same.count()));
    let moved =
        |by: u64| (0..10_000).filter(move |&it| level(it + by, now) == level(it, now + hour));
    assert!((1..10).all(|by| moved(by).count() < 200), "no caller takes a neighbour's place");

    let minute = Duration::from_secs(60);
    let start = Timestamp::from_secs(1_700_000_000 / 3_600 * 3_600);
    assert!((0..60).all(|it| level(5, start + minute * it) == level(5, start)));
}

#[test]
fn classes_come_before_levels() {
    assert!(normal(99) < high(0));
    assert!(normal(3) < normal(4));
    assert_eq!(Priority::new(PriorityClass::Low, 200).level(), 99);
}

#[test]
fn who_is_below_all_that_arrived_is_not_refused_while_all_are_served() {
    let shedding = Shedding::new();
    arrive(&shedding, std::iter::repeat_n(normal(50), 1000));
    shedding.step(1.0);
    let sheddable = Priority::new(PriorityClass::Sheddable, 0);
    for lower in [normal(49), normal(0), sheddable] {
        assert_eq!(below(&shedding, lower), 0, "{lower:?}");
    }
    assert_eq!(shedding.peek(normal(99)), Standing::Within);
    assert!(matches!(shedding.peek(high(0)), Standing::Above(_)), "as for any share");
}
