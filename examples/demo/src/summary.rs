//! What was promised and what came of it, and where to go from here.

use crate::story::Ending;
use crate::style::{Ink, Style};

const NEXT: [(&str, &str); 3] = [
    ("README.md", "what it is, and how to use it"),
    ("cargo doc -p spillgate --open", "all of the library, with examples"),
    ("scripts/bench --quick", "how it compares, measured on your machine"),
];

pub(crate) fn text(ending: &Ending, style: Style) -> String {
    let mut lines = vec![String::new(), style.paint(Ink::Bold, " What was promised")];
    for promise in &ending.promises {
        let (mark, ink) =
            if promise.kept { ("✓", Ink::Green) } else { ("✗ BROKEN:", Ink::Red) };
        lines.push(format!("  {} {}", style.paint(ink, mark), promise.text));
    }
    lines.push(String::new());
    lines.extend(speed(ending));
    lines.push(style.paint(Ink::Bold, " What next"));
    let next = |(what, why)| format!("  {}{why}", style.paint(Ink::Cyan, &format!("{what:<31}")));
    lines.extend(NEXT.map(next));
    lines.join("\n") + "\n"
}

fn speed(ending: &Ending) -> Option<String> {
    let (known, fresh) = (ending.known?, ending.fresh?);
    let text = format!(
        " A decision took {known} ns for a known caller, {fresh} ns for a fresh key in a full\n \
         table: as measured in this run, the reading of the clock included.\n"
    );
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::WIDTH;
    use crate::promises::Promise;

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let ending = Ending { promises: Vec::new(), known: Some(999), fresh: Some(9_999) };
        for line in text(&ending, Style { colours: false }).lines() {
            assert!(line.chars().count() <= WIDTH, "{line:?}");
        }
    }

    #[test]
    fn a_broken_promise_is_seen() {
        let broken = Promise { kept: false, text: "greedy got too much".to_owned() };
        let ending = Ending { promises: vec![broken], known: None, fresh: None };
        let text = text(&ending, Style { colours: false });
        assert!(text.contains("✗ BROKEN: greedy got too much"), "{text}");
    }
}
