//! Colours, where a terminal shows them. Signs and words say the same.

use std::io::IsTerminal;

use super::escape::shown;

/// Whether colours are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Colour,
}

/// A colour of a terminal, whatever that shows for it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Colour {
    Bold,
    Red,
    Green,
    Yellow,
}

impl Style {
    /// Colours if standard output is a terminal, unless `NO_COLOR` is set.
    pub(super) fn detect() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb {
            true => Self::Colour,
            false => Self::Plain,
        }
    }

    /// A text in a colour. A terminal must not obey what somebody has written into a file.
    pub(super) fn paint(self, colour: Colour, text: &str) -> String {
        let text = shown(text);
        let code = match colour {
            Colour::Bold => 1,
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
        };
        match self {
            Self::Plain => text,
            Self::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}
