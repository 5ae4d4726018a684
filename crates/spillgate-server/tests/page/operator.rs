//! What operators do with the token, and what nobody does without.

use super::tab::Tab;
use super::{by, start};
use crate::common::server::Server;
use crate::operate::clients::Http;

const CALLER: &str = "203.0.113.9";

/// Enters a token by mouse.
pub(super) fn enter(tab: &mut Tab, token: &str) {
    tab.click("#open-token");
    tab.wait("a dialog", "document.querySelector('#token-dialog').open");
    tab.write(token);
    tab.click("#token-form [type=submit]");
}

/// Fills the field of an open dialog.
fn fill(tab: &mut Tab, name: &str, text: &str) {
    tab.click(&format!("#action-fields [name={name}]"));
    tab.eval("document.activeElement.select()");
    tab.write(text);
}

/// Confirms, and returns what came of it.
fn confirm(tab: &mut Tab) -> String {
    tab.click("#action-submit");
    tab.wait("a result", "document.querySelector('#action-result').textContent !== ''");
    tab.text("#action-result")
}

fn close(tab: &mut Tab) {
    tab.click("#action-cancel");
    tab.wait("no dialog", "!document.querySelector('#action-dialog').open");
}

/// Denies a caller once more than it is allowed.
fn denied(server: &Server) -> Http {
    let mut http = Http::connect(server.http).unwrap();
    for _ in 0..6 {
        http.post(&by(CALLER)).unwrap();
    }
    http
}

fn action(text: &str) -> String {
    format!("[data-caller='caller={CALLER}'][data-of-limit=api] button[aria-label^='{text} ']")
}

#[test]
fn a_caller_is_reset_overridden_banned_and_lifted_with_the_token() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    let mut http = denied(&server);
    let mut is_allowed = || http.post(&by(CALLER)).unwrap().contains("\"allowed\":true");
    assert!(!is_allowed());
    enter(&mut tab, server.token());

    tab.click(&action("Reset"));
    assert_eq!(tab.text("#action-subject"), format!("caller={CALLER}"));
    assert!(!is_allowed(), "nothing happens before it is confirmed");
    assert_eq!(confirm(&mut tab), "Reset: nothing is spent under api any more.");
    close(&mut tab);
    assert!((0..5).all(|_| is_allowed()) && !is_allowed());

    tab.click(&action("Override"));
    fill(&mut tab, "quota", "many");
    let problem = confirm(&mut tab);
    assert!(problem.contains("quota \"many\""), "{problem}");
    fill(&mut tab, "quota", "1000/h");
    fill(&mut tab, "comment", "partner");
    tab.eval("document.querySelector('#action-result').textContent = ''");
    assert_eq!(confirm(&mut tab), "Set: 1000/h under api.");
    close(&mut tab);
    assert!((0..20).all(|_| is_allowed()));
    let row = format!("[data-override='{CALLER}']");
    tab.wait(
        "it is listed",
        &format!("document.querySelector({row:?})?.textContent.includes('partner')"),
    );
    tab.click(&format!("{row} button"));
    assert!(confirm(&mut tab).starts_with("Removed"));
    close(&mut tab);
    tab.wait("it is gone", &format!("!document.querySelector({row:?})"));

    tab.click(&action("Ban"));
    fill(&mut tab, "reason", "credential stuffing");
    assert!(confirm(&mut tab).starts_with(&format!("Banned: {CALLER}, until ")));
    close(&mut tab);
    assert!(http.post(&by(CALLER)).unwrap().contains("\"banned\":true"));
    let row = format!("[data-ban='{CALLER}']");
    tab.wait(
        "it is listed",
        &format!("document.querySelector({row:?})?.textContent.includes('stuffing')"),
    );
    tab.wait("it is counted", "document.querySelector('[data-now=bans]').textContent === '1'");
    tab.click(&format!("{row} button"));
    assert_eq!(confirm(&mut tab), format!("Lifted: {CALLER} is no longer banned."));
    close(&mut tab);
    tab.wait("it is gone", &format!("!document.querySelector({row:?})"));
    assert!(!http.post(&by(CALLER)).unwrap().contains("\"banned\":true"));
    tab.end(&["422"]);
}

#[test]
fn a_request_is_explained() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    denied(&server);
    enter(&mut tab, server.token());
    tab.wait("the token is taken", "!document.querySelector('#token-dialog').open");
    tab.click("#open-explain");
    let shown = |tab: &mut Tab, ip: &str, headers: &str| {
        for (name, value) in [("ip", ip), ("headers", headers)] {
            tab.eval(&format!(
                "document.querySelector('#explain-form').elements.{name}.value = {value:?}"
            ));
        }
        tab.eval("document.querySelector('#explain-result').replaceChildren()");
        tab.eval("document.querySelector('#explain-problem').textContent = ''");
        tab.click("#explain-form [type=submit]");
        tab.wait(
            "an answer",
            "(document.querySelector('#explain-result').textContent + \
            document.querySelector('#explain-problem').textContent) !== ''",
        );
        tab.text("#explain-result") + &tab.text("#explain-problem")
    };
    let explained = shown(&mut tab, CALLER, "");
    for text in [
        "✕ Denied",
        "ip:203.0.113.9",
        "counted under caller=203.0.113.9",
        "0 of 5 left",
        "would pass in",
    ] {
        assert!(explained.contains(text), "{text}: {explained}");
    }
    assert_eq!(tab.text("[data-explained=trial] .badge"), "shadow");
    let other = shown(&mut tab, "203.0.113.10", "x-tenant: 1\nx-tenant: 2");
    assert!(other.contains("✓ Allowed") && other.contains("5 of 5 left"), "{other}");
    assert!(shown(&mut tab, "203.0.113.10", "no colon").contains("has no colon"));
    let problem = shown(&mut tab, "nowhere", "");
    assert!(problem.contains("invalid IP address"), "{problem}");
    // Explaining spends nothing.
    let allowed = tab.text("[data-limit=api][data-field=allowed]");
    assert_eq!(allowed, "5 total");
    tab.end(&["400", "422"]);
}

#[test]
fn without_the_token_nothing_is_revealed_or_changed_and_a_wrong_one_is_reported() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    denied(&server);
    let row = format!("[data-caller='caller={CALLER}']");
    tab.wait("the caller", &format!("!!document.querySelector({row:?})"));
    let buttons = "[...document.querySelectorAll('#callers button, #bans button')].filter((button) => button.checkVisibility()).length";
    assert_eq!(tab.eval(buttons), 0);
    assert_eq!(tab.eval("document.querySelector('#overrides').checkVisibility()"), false);
    for (method, path) in [
        ("GET", "v1/status?reveal=true"),
        ("GET", "v1/top?reveal=true"),
        ("GET", "v1/bans"),
        ("PUT", "v1/bans/203.0.113.9"),
        ("DELETE", "v1/limits/api/keys/203.0.113.9"),
        ("POST", "v1/explain"),
    ] {
        let ask =
            format!("fetch({path:?}, {{ method: {method:?} }}).then(({{ status }}) => status)");
        assert_eq!(tab.eval(&ask), 401, "{method} {path}");
    }

    tab.click("#open-explain");
    tab.wait("the token is asked for", "document.querySelector('#token-dialog').open");
    assert_eq!(tab.eval("document.querySelector('#explain-dialog').open"), false);
    tab.write("wrong");
    tab.press("Enter");
    tab.wait("a result", "document.querySelector('#token-result').textContent !== ''");
    assert_eq!(tab.text("#token-result"), "Refused: invalid token.");
    assert!(tab.eval("sessionStorage.getItem('spillgate-token')").is_null());
    tab.press("Escape");
    tab.wait("no dialog", "!document.querySelector('#token-dialog').open");
    assert_eq!(tab.text("#open-token"), "Enter token");

    enter(&mut tab, server.token());
    tab.wait(
        "the token is taken",
        "document.querySelector('#open-token').textContent === 'Token ✓'",
    );
    assert!(tab.eval("localStorage.getItem('spillgate-token')").is_null());
    tab.click("#open-token");
    tab.click("#token-forget");
    tab.wait("it is forgotten", "sessionStorage.getItem('spillgate-token') === null");
    tab.wait("buttons are gone", &format!("{buttons} === 0"));
    tab.end(&["401"]);
}
