//! Any text is a quota or an error that points inside the text; a quota that is
//! printed is read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spillgate::Quota;

fuzz_target!(|text: &str| match text.parse::<Quota>() {
    Ok(quota) => {
        let printed = quota.to_string();
        assert_eq!(printed.parse(), Ok(quota));
    }
    Err(error) => {
        let span = error.span().expect("an error of a text says where it is");
        assert!(text.get(span).is_some());
        assert!(!format!("{error:#}").is_empty());
    }
});
