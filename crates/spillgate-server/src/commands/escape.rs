//! Text that somebody else chose, for a terminal.

use std::fmt::Write;

use serde::Deserialize;

/// The text, with a replacement character for everything that a terminal obeys instead of showing
/// it, and for what nobody sees.
pub(super) fn shown(text: &str) -> String {
    text.chars().map(|it| if is_obeyed(it) { char::REPLACEMENT_CHARACTER } else { it }).collect()
}

/// JSON that says the same, without what a terminal obeys: that is only in texts, where it can be
/// written as an escape.
pub(super) fn shown_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for it in json.chars() {
        match is_obeyed(it) && !it.is_ascii_whitespace() {
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

/// True for what a terminal does not show, but does: also for what changes the order of others,
/// and for what is invisible, with which one caller could look like another.
fn is_obeyed(it: char) -> bool {
    let is_invisible = matches!(it, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    it.is_control() || is_invisible
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
        assert!(!shown.chars().any(|it| is_obeyed(it) && it != '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_terminal_obeys_nothing_and_all_is_visible() {
        let hostile = "\u{1b}]0;x\u{7}\r\n\u{9b}2J\u{202e}\u{200b}\u{feff}\u{e0041}\u{2066}é漢";
        let safe = Untrusted::from(hostile).shown();
        assert!(!safe.chars().any(|it| it.is_control() || is_obeyed(it)), "{safe:?}");
        assert_eq!(safe.chars().count(), hostile.chars().count());
        assert!(safe.ends_with("é漢"), "{safe:?}");
    }
}
