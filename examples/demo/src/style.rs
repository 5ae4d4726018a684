//! Colours, bars and numbers.

use std::time::Duration;

/// Whether to use colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) colours: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    /// The text in colour. Pad it before: colours have letters too.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            _ if !self.colours => return text.to_owned(),
            Ink::Bold => 1,
            Ink::Dim => 2,
            Ink::Red => 31,
            Ink::Green => 32,
            Ink::Yellow => 33,
            Ink::Cyan => 36,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A bar of so many cells, as full as `part` of `whole`.
pub(crate) fn bar(part: u64, whole: u64, cells: usize) -> String {
    const PARTIAL: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.min(whole) as usize * cells * 8).checked_div(whole as usize).unwrap_or(0);
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(PARTIAL[eighths % 8]);
    let empty = cells - eighths.div_ceil(8);
    bar.push_str(&"░".repeat(empty));
    bar
}

/// One letter for each number, as high as it is of `peak`. Nothing is blank, and
/// anything is more than that.
pub(crate) fn sparkline(numbers: &[u64], peak: u64) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = |number: &u64| (number.min(&peak) * 8).div_ceil(peak.max(1)) as usize;
    numbers.iter().map(|number| LEVELS[level(number).min(8)]).collect()
}

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of bytes, in kilobytes or megabytes.
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes < 1_000_000 {
        format!("{} kB", bytes / 1_000)
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    }
}

/// A short time, rounded up: who comes back then is not too early.
pub(crate) fn wait(time: Duration) -> String {
    format!("{} ms", time.as_nanos().div_ceil(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_width_whatever_they_show() {
        assert_eq!(bar(0, 20, 4), "░░░░");
        assert_eq!(bar(1, 20, 4), "▏░░░");
        assert_eq!(bar(10, 20, 4), "██░░");
        assert_eq!(bar(20, 20, 4), "████");
        assert_eq!(bar(99, 20, 4), "████");
        assert_eq!(bar(0, 0, 4), "░░░░");
    }

    #[test]
    fn sparklines_tell_something_from_nothing() {
        assert_eq!(sparkline(&[0, 1, 50, 100, 200], 100), " ▁▄██");
        assert_eq!(sparkline(&[0, 0], 0), "  ");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_500_300), "1,500,300");
    }

    #[test]
    fn waits_are_rounded_up() {
        assert_eq!(wait(Duration::from_nanos(1)), "1 ms");
        assert_eq!(wait(Duration::from_millis(70)), "70 ms");
    }

    #[test]
    fn no_colours_no_escapes() {
        assert_eq!(Style { colours: false }.paint(Ink::Red, "no"), "no");
        assert_eq!(Style { colours: true }.paint(Ink::Red, "no"), "\x1b[31mno\x1b[0m");
    }
}
