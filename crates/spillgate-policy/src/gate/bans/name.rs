//! The names of keys and users who are banned. A header may hold any bytes, and whoever is banned
//! must be told apart, found again after a restart, and lifted.

use std::borrow::Cow;
use std::fmt::Write;

use crate::Caller;

/// `user:NAME`, or `user-hex:` and the bytes in hexadecimal if they are not UTF-8.
pub(super) fn named(kind: &str, name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(name) => format!("{kind}:{name}"),
        Err(_) => name.iter().fold(format!("{kind}-hex:"), |mut text, byte| {
            // Into a text nothing fails to be written.
            let _ = write!(text, "{byte:02x}");
            text
        }),
    }
}

/// A caller whose name is in hexadecimal; `None` if it is written otherwise.
pub(super) fn from_hex(text: &str) -> Option<Caller<'static>> {
    let (kind, digits) = text.split_once("-hex:")?;
    let is_hex = |digit: u8| digit.is_ascii_hexdigit();
    if digits.is_empty() || !digits.bytes().all(is_hex) || digits.len() % 2 == 1 {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let name = digits.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
    match kind {
        "key" | "api-key" => Some(Caller::ApiKey(Cow::Owned(name))),
        "user" => Some(Caller::User(Cow::Owned(name))),
        _ => None,
    }
}
