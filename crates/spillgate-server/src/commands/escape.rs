//! Text that somebody else chose, for a terminal.

use serde::Deserialize;
pub(super) use spillgate_policy::printable as shown;

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
    fn a_terminal_obeys_nothing_and_all_is_visible() {
        let hostile = "\u{1b}]0;x\u{7}\r\n\u{9b}2J\u{202e}\u{200b}\u{feff}\u{e0041}\u{2066}é漢";
        let safe = Untrusted::from(hostile).shown();
        assert!(!safe.chars().any(char::is_control), "{safe:?}");
        assert_eq!(safe.chars().count(), hostile.chars().count());
        assert_eq!(safe, shown(&safe));
        assert!(safe.ends_with("é漢"), "{safe:?}");
    }
}
