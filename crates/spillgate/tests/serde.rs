//! A quota in a configuration file is its text.

use spillgate::Quota;

#[test]
fn a_quota_is_written_and_read_as_text() {
    let quota: Quota = serde_json::from_str("\"5 per 10 s burst 7\"").unwrap();
    assert_eq!(quota, "5 per 10 s burst 7".parse().unwrap());
    assert_eq!(serde_json::to_string(&quota).unwrap(), "\"5 per 10 s burst 7\"");
}

#[test]
fn a_bad_quota_is_an_error_that_names_it() {
    let error = serde_json::from_str::<Quota>("\"10/fortnight\"").unwrap_err().to_string();
    assert!(error.contains("10/fortnight") && error.contains("unknown unit"), "{error}");
    let error = serde_json::from_str::<Quota>("10").unwrap_err().to_string();
    assert!(error.contains("a quota such as"), "{error}");
}
