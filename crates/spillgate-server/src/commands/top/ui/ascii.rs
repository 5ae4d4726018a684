//! For terminals that know ASCII only.

use ratatui::buffer::Buffer;

/// Replaces every character that is not ASCII.
pub(super) fn replace(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            cell.set_char(substitute(cell.symbol().chars().next().unwrap_or(' ')));
        }
    }
}

fn substitute(it: char) -> char {
    match it {
        '─' => '-',
        '│' => '|',
        '┌' | '┐' | '└' | '┘' => '+',
        '▸' => '>',
        '·' | '▁' | '▂' => '.',
        '▃' | '▄' => ':',
        '▅' | '▆' => '+',
        '▇' | '█' => '#',
        '…' => '~',
        '±' => '+',
        'µ' => 'u',
        _ => '?',
    }
}
