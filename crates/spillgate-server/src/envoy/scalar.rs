//! Plain scalars of YAML 1.1, which the parser of envoyproxy/ratelimit reads.

pub(super) fn is_null(text: &str) -> bool {
    ["", "~", "null", "Null", "NULL"].contains(&text)
}

pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => {
            Some(true)
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            Some(false)
        }
        _ => None,
    }
}

/// An integer: `10`, `0x0a`, `0b1010`, `0o12`, or `012`, also octal. `_` may group digits.
pub(super) fn integer(text: &str) -> Option<i64> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first)) {
        return None;
    }
    let plain = text.replace('_', "").to_ascii_lowercase();
    let (is_negative, digits) = match plain.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let (digits, radix) = match digits.split_at_checked(2) {
        Some(("0x", hex)) => (hex, 16),
        Some(("0o", octal)) => (octal, 8),
        Some(("0b", binary)) => (binary, 2),
        _ if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        _ => (digits, 10),
    };
    // Rust would take another sign.
    let number = digits.starts_with(|first: char| first.is_ascii_hexdigit()).then_some(digits)?;
    let number = i64::from_str_radix(number, radix).ok()?;
    Some(if is_negative { -number } else { number })
}

pub(super) fn number(text: &str) -> Option<f64> {
    if let Some(integer) = integer(text) {
        return Some(integer as f64);
    }
    match text {
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let starts = |first: char| first.is_ascii_digit() || "+-.".contains(first);
    let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE_".contains(&byte);
    let may_be = text.starts_with(starts) && text.bytes().all(is_number);
    may_be.then(|| text.replace('_', "").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_those_of_yaml_1_1() {
        for (text, expected) in [
            ("0", Some(0)),
            ("10", Some(10)),
            ("+10", Some(10)),
            ("-10", Some(-10)),
            ("1_000", Some(1_000)),
            ("010", Some(8)),
            ("0_10", Some(8)),
            ("-010", Some(-8)),
            ("0o10", Some(8)),
            ("0x1F", Some(31)),
            ("0b101", Some(5)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("08", None),
            ("0x", None),
            ("0x-1", None),
            ("--1", None),
            ("+", None),
            ("_1", None),
            ("1.0", None),
            ("1e3", None),
            ("ten", None),
            ("", None),
        ] {
            assert_eq!(integer(text), expected, "{text:?}");
        }
    }

    #[test]
    fn booleans_are_those_of_yaml_1_1() {
        for text in ["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"] {
            assert_eq!(boolean(text), Some(true), "{text}");
        }
        for text in ["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"] {
            assert_eq!(boolean(text), Some(false), "{text}");
        }
        for text in ["", "tRUE", "TRue", "yEs", "oN", "1", "t", "truer", "\u{e9}"] {
            assert_eq!(boolean(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_may_have_fractions() {
        for (text, expected) in [
            ("010", Some(8.0)),
            ("1.5", Some(1.5)),
            ("-.5", Some(-0.5)),
            ("1e3", Some(1000.0)),
            ("1_0.5", Some(10.5)),
            (".inf", Some(f64::INFINITY)),
            ("-.INF", Some(f64::NEG_INFINITY)),
            ("inf", None),
            ("1.2.3", None),
            ("10.0.0.1", None),
            ("-", None),
            ("v1", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
        assert!(number(".nan").is_some_and(f64::is_nan));
    }
}
