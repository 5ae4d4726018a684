//! The rule equals a slow reference that keeps every offence and works all out again each time.

use std::time::Duration;

use proptest::prelude::*;
use spillgate::Timestamp;
use spillgate_policy::store::{BanRule, BanStart, BanState};

/// A ban that was started.
struct Past {
    ended: Timestamp,
    /// How many there were with it, since they were last forgotten; zero if it is forgotten.
    count: u32,
}

/// Everything a caller did.
#[derive(Default)]
struct Reference {
    /// When it offended, also while it was banned.
    history: Vec<Timestamp>,
}

impl Reference {
    /// What the last offence of the history leads to, worked out from the first.
    fn last(&self, rule: &BanRule) -> Option<BanStart> {
        let mut bans: Vec<Past> = Vec::new();
        // Those since the last ban, each no earlier than the one before.
        let mut counted: Vec<Timestamp> = Vec::new();
        let mut answer = None;
        for now in &self.history {
            answer = None;
            if let Some(ban) = bans.iter().rfind(|ban| ban.ended > *now) {
                let mut in_force = BanStart::new(ban.ended.since(*now), ban.count);
                in_force.is_new = false;
                answer = Some(in_force);
                continue;
            }
            let latest = counted.iter().chain([now]).copied().max().unwrap();
            let last_ban = bans.last().map(|ban| ban.ended);
            let active = counted.last().copied().into_iter().chain(last_ban).max();
            let earlier = match active {
                Some(active) if latest.since(active) < rule.decay => {
                    bans.last().map_or(0, |ban| ban.count)
                }
                _ => 0,
            };
            // Forgotten bans are not remembered by later offences either.
            if let Some(ban) = bans.last_mut() {
                ban.count = earlier;
            }
            counted.push(latest);
            let recent = counted.iter().filter(|offence| latest.since(**offence) < rule.window);
            if recent.count() >= rule.strikes as usize {
                let start = BanStart::new(length(rule, earlier), earlier + 1);
                bans.push(Past { ended: *now + start.duration, count: start.count });
                counted.clear();
                answer = Some(start);
            }
        }
        answer
    }
}

/// `min(duration · factor^bans, max)`, in whole numbers.
fn length(rule: &BanRule, bans: u32) -> Duration {
    let mut length = rule.duration;
    for _ in 0..bans {
        length = length.saturating_mul(rule.factor as u32).min(rule.max);
    }
    length.min(rule.max)
}

/// Rules whose factor is a whole number, so that nothing is rounded.
fn rules() -> impl Strategy<Value = BanRule> {
    let factors = prop_oneof![Just(1_u32), Just(2), Just(3), Just(100)];
    (1_u32..=6, 1_u64..=120, 1_u64..=60, factors, 0_u64..=600, 1_u64..=300).prop_map(
        |(strikes, window, duration, factor, beyond, decay)| {
            let mut rule = BanRule::new(strikes);
            rule.window = Duration::from_secs(window);
            rule.duration = Duration::from_secs(duration);
            rule.factor = f64::from(factor);
            rule.max = Duration::from_secs(duration + beyond);
            rule.decay = Duration::from_secs(decay);
            rule
        },
    )
}

/// Times that mostly go forward, often by nothing or exactly to where something ends, and now and
/// then back.
fn steps() -> impl Strategy<Value = Vec<i64>> {
    let step = prop_oneof![
        6 => 0_i64..=20,
        3 => 0_i64..=120,
        1 => 100_i64..=700,
        1 => -200_i64..=0,
    ];
    proptest::collection::vec(step, 1..80)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000_u64.checked_add_signed(seconds).unwrap())
}

proptest! {
    #[test]
    fn equals_the_reference(rule in rules(), steps in steps()) {
        let (mut state, mut reference, mut seconds) = (BanState::default(), Reference::default(), 0);
        for step in steps {
            seconds += step;
            reference.history.push(at(seconds));
            let expected = reference.last(&rule);
            let mut restored = BanState::from_bytes(&state.to_bytes()).unwrap();
            prop_assert_eq!(&restored, &state);
            prop_assert_eq!(rule.offence(&mut restored, at(seconds), 0.0), expected);
            prop_assert_eq!(rule.offence(&mut state, at(seconds), 0.0), expected);
            prop_assert_eq!(&restored, &state);
        }
    }

    #[test]
    fn a_forgotten_state_is_that_of_a_newcomer(
        rule in rules(),
        steps in steps(),
        later in 0_u64..500,
    ) {
        let (mut state, mut seconds) = (BanState::default(), 0);
        for step in steps {
            seconds += step;
            rule.offence(&mut state, at(seconds), 0.0);
        }
        let mut now = rule.forgotten_at(&state) + Duration::from_secs(later);
        let mut newcomer = BanState::default();
        for _ in 0..10 {
            let expected = rule.offence(&mut newcomer, now, 0.0);
            prop_assert_eq!(rule.offence(&mut state, now, 0.0), expected);
            now = now + Duration::from_secs(7);
        }
    }

    #[test]
    fn until_it_is_forgotten_a_ban_grows(rule in rules(), early in 1_u64..1000) {
        let mut state = BanState::default();
        while rule.offence(&mut state, at(0), 0.0).is_none() {}
        let end = rule.forgotten_at(&state) - Duration::from_nanos(early);
        let again = (0..rule.strikes).filter_map(|_| rule.offence(&mut state, end, 0.0)).last();
        prop_assert!(again.is_none_or(|ban| ban.count == 2), "{again:?}");
    }

    #[test]
    fn garbage_is_no_state(bytes in proptest::collection::vec(any::<u8>(), 0..900)) {
        if let Some(state) = BanState::from_bytes(&bytes) {
            prop_assert_eq!(state.to_bytes(), bytes);
        }
    }

    #[test]
    fn a_damaged_state_is_none_or_harmless(
        rule in rules(),
        steps in steps(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        now in any::<u64>(),
    ) {
        let (mut state, mut seconds) = (BanState::default(), 0);
        for step in steps {
            seconds += step;
            rule.offence(&mut state, at(seconds), 0.0);
        }
        let mut bytes = state.to_bytes();
        *place.get_mut(&mut bytes) = byte;
        if let Some(mut state) = BanState::from_bytes(&bytes) {
            rule.offence(&mut state, Timestamp::from_nanos(now), 0.0);
            prop_assert!(state.to_bytes().len() <= 813);
        }
    }

    #[test]
    fn jitter_makes_bans_longer_by_its_share_at_most(
        mut rule in rules(),
        jitter in 0.0..=1.0,
        draw in 0.0..=1.0,
    ) {
        rule.jitter = jitter;
        let mut state = BanState::default();
        let ban = (0..rule.strikes).find_map(|_| rule.offence(&mut state, at(0), draw)).unwrap();
        let plain = length(&rule, 0);
        prop_assert!(ban.duration >= plain);
        prop_assert!(ban.duration <= plain.mul_f64(1.0 + jitter) + Duration::from_nanos(1));
        prop_assert_eq!(state.until(), at(0) + ban.duration);
    }
}

#[test]
fn the_fifth_offence_within_ten_minutes_bans() {
    let rule = BanRule::new(5);
    let mut state = BanState::default();
    let minutes = |minutes: u64| at(60 * minutes as i64);
    for minute in [0, 2, 4, 6] {
        assert_eq!(rule.offence(&mut state, minutes(minute), 0.0), None);
    }
    // The first counts no more.
    assert_eq!(rule.offence(&mut state, minutes(10), 0.0), None);
    let ban = rule.offence(&mut state, minutes(11), 0.0).unwrap();
    assert_eq!(ban, BanStart::new(Duration::from_secs(600), 1));
    let found = rule.offence(&mut state, minutes(20), 0.0).unwrap();
    assert_eq!((found.duration, found.count), (Duration::from_secs(60), 1));
    assert!(!found.is_new, "while banned nothing counts");
    assert_eq!(state.until(), minutes(21));
}

#[test]
fn bans_grow_up_to_the_longest() {
    let rule = BanRule::new(1);
    let (mut state, mut now) = (BanState::default(), at(0));
    let lengths: Vec<_> = (0..10)
        .map(|_| {
            let ban = rule.offence(&mut state, now, 0.0).unwrap();
            now = now + ban.duration;
            ban.duration.as_secs() / 60
        })
        .collect();
    assert_eq!(lengths, [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]);
}

#[test]
fn a_factor_may_have_a_fraction() {
    let mut rule = BanRule::new(1);
    rule.factor = 1.5;
    let mut state = BanState::default();
    for (start, seconds) in [(0, 600), (600, 900), (1500, 1350)] {
        let ban = rule.offence(&mut state, at(start), 0.0).unwrap();
        assert_eq!(ban.duration, Duration::from_secs(seconds));
    }
}

#[test]
fn extreme_rules_do_not_panic() {
    let mut rule = BanRule::new(0);
    let mut state = BanState::default();
    for factor in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
        (rule.factor, rule.jitter, rule.max) = (factor, factor, Duration::MAX);
        for now in [Timestamp::ZERO, Timestamp::MAX, at(0), Timestamp::MAX] {
            rule.offence(&mut state, now, factor);
            assert!(rule.forgotten_at(&state) <= Timestamp::MAX);
        }
    }
    let mut many = BanRule::new(u32::MAX);
    many.window = Duration::MAX;
    let mut state = BanState::default();
    let ban = (0..100).find_map(|_| many.offence(&mut state, at(0), 0.0));
    assert!(ban.is_some(), "no more than 100 offences are kept");
}
