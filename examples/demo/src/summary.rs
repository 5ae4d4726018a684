//! What was promised and what came of it, and where to go from here.

use crate::story::Ending;
use crate::style::{Ink, Style};

const NEXT: [(&str, &str); 3] = [
    ("README.md", "what it is, and how to use it"),
    ("cargo doc -p tollgate --open", "all of the library, with examples"),
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
    Some(format!(
        " A decision took {known} ns for a known client, {fresh} ns for a fresh key in a full table,\n \
         by the clock of this run on this machine.\n"
    ))
}
