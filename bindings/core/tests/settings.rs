//! Settings: defaults, and errors that name the value and what would be right.

use std::time::Duration;

use spillgate_bindings::{DEFAULT_QUOTA, ErrorCode, Settings};

#[test]
fn everything_has_a_default() {
    let limiter = Settings::default().build().unwrap();
    assert_eq!(limiter.quota().to_string(), DEFAULT_QUOTA);
    assert_eq!(limiter.table().capacity(), 100_000);
}

#[test]
fn a_quota_is_text_or_numbers() {
    let minute = Some(Duration::from_secs(60));
    for (settings, quota) in [
        (Settings { quota: Some("5 per 10 s"), ..Settings::default() }, "5 per 10 s"),
        (Settings { refill: Some(5), ..Settings::default() }, "5/s"),
        (Settings { refill: Some(5), window: minute, ..Settings::default() }, "5/min"),
        (Settings { refill: Some(5), burst: Some(9), ..Settings::default() }, "5/s burst 9"),
    ] {
        assert_eq!(settings.build().unwrap().quota().to_string(), quota);
    }
}

#[test]
fn a_wrong_setting_is_named() {
    use ErrorCode::{Algorithm, Argument, Capacity, Quota, Tier};
    let ours = Settings::default;
    for (settings, code, part) in [
        (Settings { quota: Some("10/fortnight"), ..ours() }, Quota, "^^^^^^^^^"),
        (Settings { quota: Some("1/s"), burst: Some(2), ..ours() }, Quota, "text or numbers"),
        (Settings { burst: Some(2), ..ours() }, Quota, "without a refill"),
        (Settings { window: Some(Duration::ZERO), ..ours() }, Quota, "without a refill"),
        (Settings { algorithm: Some("magic"), ..ours() }, Algorithm, "use one of token-bucket"),
        (Settings { when_full: Some("wait"), ..ours() }, Argument, "evict, protect, deny"),
        (Settings { start: Some("half"), ..ours() }, Argument, "full, empty"),
        (Settings { max_callers: Some(0), ..ours() }, Capacity, "0"),
        (Settings { tiers: vec![("gold", "1/s")], ..ours() }, Tier, "gold"),
    ] {
        let error = settings.build().unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(part), "{error} does not say {part}");
    }
}

#[test]
fn a_tier_beyond_the_last_is_the_limiters_own_quota() {
    let settings = Settings {
        quota: Some("1/s"),
        tiers: vec![("gold", "5/s")],
        tier_of: Some(Box::new(|key, _| Some(key.len()))),
        ..Settings::default()
    };
    let limiter = settings.build().unwrap();
    assert_eq!((limiter.check(b"").limit(), limiter.check(b"x").limit()), (5, 1));
}
