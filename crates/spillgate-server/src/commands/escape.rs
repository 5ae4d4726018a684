//! Text that somebody else chose, for a terminal.

use std::fmt::Write;

use serde::Deserialize;
use spillgate_policy::is_printable;
pub(super) use spillgate_policy::printable as shown;

/// JSON that says the same, without what a terminal obeys: that is only in texts, where it can be
/// written as an escape.
pub(super) fn shown_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for it in json.chars() {
        match !is_printable(it) && !it.is_ascii_whitespace() {
            true => {
                let mut units = [0; 2];
                for unit in it.encode_utf16(&mut units) {
                    // Into a text nothing fails to be written.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
            false => shown.push(it),
        }
    }
    shown
}

/// A text of the server, in which a caller may have chosen anything. It has to be
/// [escaped](Untrusted::shown) before it can be printed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(transparent)]
pub(super) struct Untrusted(String);

impl Untrusted {
    /// For a terminal.
    pub(super) fn shown(&self) -> String {
        shown(&self.0)
    }

    /// As it is: to compare it, and to send it back.
    pub(super) fn raw(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Untrusted {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_a_terminal_says_the_same() {
        let value = serde_json::json!({ "a": "\u{9b}2J\u{7f}\u{202e}\u{e0041}é\n" });
        let shown = shown_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!shown.chars().any(|it| !is_printable(it) && it != '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_terminal_obeys_nothing_and_all_is_visible() {
        let hostile = "\u{1b}]0;x\u{7}\r\n\u{9b}2J\u{202e}\u{200b}\u{feff}\u{e0041}\u{2066}é漢";
        let safe = Untrusted::from(hostile).shown();
        assert!(!safe.chars().any(char::is_control), "{safe:?}");
        assert_eq!(safe.chars().count(), hostile.chars().count());
        assert_eq!(safe, shown(&safe));
        assert!(safe.ends_with("é漢"), "{safe:?}");
    }
}
