//! The page without a mouse.

use super::start;
use super::tab::Tab;

/// Presses Tab until an element has the focus, which must be seen.
fn tab_to(tab: &mut Tab, key: &str, id: &str) {
    for _ in 0..60 {
        tab.press(key);
        if tab.eval("document.activeElement.id") == id {
            let outline = tab.eval("getComputedStyle(document.activeElement).outlineStyle");
            assert_eq!(outline, "solid", "the focus on {id} is seen");
            return;
        }
    }
    panic!("{key} never leads to {id}");
}

#[test]
fn the_token_is_entered_and_a_request_is_explained_by_keyboard_only() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    tab.press("Tab");
    assert_eq!(tab.eval("document.activeElement.className"), "skip");
    tab_to(&mut tab, "Tab", "open-token");
    tab.press("Enter");
    tab.wait("the field has the focus", "document.activeElement.id === 'token-input'");
    tab.write(server.token());
    tab.press("Enter");
    tab.wait("the dialog closes", "!document.querySelector('#token-dialog').open");
    assert_eq!(tab.eval("document.activeElement.id"), "open-token", "the focus returns");
    tab_to(&mut tab, "Shift+Tab", "open-explain");
    tab.press("Enter");
    tab.wait("the path has the focus", "document.activeElement.name === 'path'");
    tab.write("/search?q=1");
    tab.press("Enter");
    tab.wait("an answer", "document.querySelector('[data-answer]')?.dataset.answer === 'allowed'");
    assert_eq!(tab.eval("document.activeElement.id"), "explain-result", "and is read");
    tab.press("Escape");
    tab.wait("the dialog closes", "!document.querySelector('#explain-dialog').open");
    assert_eq!(tab.eval("document.activeElement.id"), "open-explain");
    tab.end(&[]);
}

#[test]
fn charts_are_read_by_arrow_keys_and_updates_leave_the_focus_where_it_is() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    tab.wait(
        "a chart",
        "document.querySelector('#chart-allowed .chart-plot .line.allowed[d]') !== null",
    );
    tab.eval("document.querySelector('#chart-allowed svg.chart-plot').focus()");
    for _ in 0..3 {
        tab.press("ArrowLeft");
    }
    let said = tab.text("#chart-refused .chart-time");
    assert!(said.starts_with("per second, ") && said.contains(':'), "both charts: {said}");
    tab.press("Escape");
    assert_eq!(tab.text("#chart-allowed .chart-time"), "per second, latest");

    tab.eval(
        "document.querySelector('[data-row=login] button').focus(); \
        window.button = document.activeElement",
    );
    tab.press("Enter");
    tab.wait("one limit", "document.querySelector('#scope').value === 'login'");
    let before = tab.text("#uptime");
    // Updates have come since then.
    tab.wait(
        "time goes on",
        &format!("document.querySelector('#uptime').textContent !== {before:?}"),
    );
    assert_eq!(
        tab.eval("document.activeElement === window.button && window.button.isConnected"),
        true
    );
    tab.end(&[]);
}
