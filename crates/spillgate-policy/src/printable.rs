/// A text that somebody else chose, for a terminal or a page: everything that is not shown, but
/// obeyed, is replaced by `\u{fffd}`: control characters, those that change the order of others, and
/// invisible ones, with which one caller could look like another.
///
/// ```
/// use spillgate_policy::printable;
///
/// assert_eq!(printable("\u{1b}[31mred\u{202e}der"), "\u{fffd}[31mred\u{fffd}der");
/// assert_eq!(printable("naïve 漢字"), "naïve 漢字");
/// ```
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|it| if is_printable(it) { it } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// False for control characters, and for what Unicode says to ignore where it is not supported: joiners,
/// marks and overrides of direction, variation selectors, tags.
#[must_use]
pub fn is_printable(it: char) -> bool {
    let is_invisible = matches!(it, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    !it.is_control() && !is_invisible
}
