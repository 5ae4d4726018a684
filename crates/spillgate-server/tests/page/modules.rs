//! Parts of the page by themselves, in the browser that they are for.

use super::start;
use super::tab::Tab;

#[test]
fn events_history_axes_texts_and_rows_do_what_they_say() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    for (name, script) in [
        ("events", include_str!("modules/events.js")),
        ("history", include_str!("modules/history.js")),
        ("format", include_str!("modules/format.js")),
        ("rows", include_str!("modules/rows.js")),
    ] {
        let checks = include_str!("modules/checks.js");
        let done = tab.eval(&format!("(async () => {{ {checks}\n{script} }})()"));
        assert!(done.as_u64() > Some(0), "{name}: {done}");
    }
    tab.end(&[]);
}
