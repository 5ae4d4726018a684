//! What attackers choose is shown as text.

use serde_json::{Value, json};
use spillgate_testing::program;

use super::operator::enter;
use super::tab::Tab;
use crate::common::server::{Home, run};
use crate::operate::clients::Http;

const POLICY: &str = "[server]\nhttp = '127.0.0.1:0'\nresp = 'off'\n\
    [[limit]]\nname = 'agent'\nper = 'header:user-agent'\nquota = '1/h'\n\
    [[limit]]\nname = 'page'\nmatch = { path = '/page/{id}' }\nper = 'path:id'\nquota = '1/h'\n\
    [[limit]]\nname = 'login'\nby-name = true\nper = 'user'\nquota = '1/h'\n";

const NAMES: [&str; 7] = [
    "<img src=x onerror=alert(1)>",
    "</div></main><script>alert(2)</script>",
    "\"'`;--${7*7}{{7*7}}",
    "javascript:alert(3)",
    "a\nb\tc\u{0}d\u{7f}",
    "\u{202e}gpj.exe\u{2066}\u{200b}",
    "%2e%2e/../..",
];

/// Text as the page shows it: what cannot be seen is written as an escape.
fn visible(text: &str) -> String {
    let hidden = |letter: char| letter.is_control() || "\u{202e}\u{2066}\u{200b}".contains(letter);
    let write = |letter: char| match hidden(letter) {
        true => format!("\\u{{{:x}}}", u32::from(letter)),
        false => letter.to_string(),
    };
    text.chars().map(write).collect()
}

#[test]
fn hostile_keys_paths_user_agents_and_reasons_are_shown_as_text() {
    let home = Home::new(POLICY);
    let server = home.start(&[]);
    let long = "A".repeat(2000);
    let names = NAMES.into_iter().chain([&*long]);
    // Of long keys the beginning is shown.
    let ends = NAMES.map(visible).into_iter().chain([format!("{}…", "A".repeat(64))]);
    let mut http = Http::connect(server.http).unwrap();
    let mut twice = |body: Value| {
        for _ in 0..2 {
            http.post(&body.to_string()).unwrap();
        }
    };
    for name in names.clone() {
        twice(json!({ "limit": "login", "key": name }));
        // Neither header nor path can have every byte.
        if name.is_ascii() && !name.contains(char::is_control) {
            twice(json!({ "request": { "path": "/", "headers": { "user-agent": name } } }));
        }
        let escaped: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        twice(json!({ "request": { "path": format!("/page/{escaped}"), "ip": "203.0.113.7" } }));
    }
    let bearer = format!("authorization: Bearer {}", server.token());
    let reason = NAMES[1];
    let body = json!({ "ttl": "1h", "reason": reason }).to_string();
    run(program("curl").args(["-sSf", "-X", "PUT", "-H", &bearer]).args([
        "--json",
        &body,
        &server.url("/v1/bans/user:%3Cimg%20src=x%20onerror=alert(4)%3E"),
    ]));

    let mut tab = Tab::live(&server.url("/"));
    let elements = tab.eval("document.querySelectorAll('img, script, iframe, a').length");
    enter(&mut tab, server.token());
    tab.wait(
        "callers in clear",
        "document.querySelector('#callers button[aria-label^=Reset]') !== null",
    );
    tab.click("#callers-more");
    tab.wait("all callers", "document.querySelectorAll('#callers .rows .row').length > 10");
    let texts = "[...document.querySelectorAll('#callers .who')].map((node) => node.textContent)";
    for expected in ends {
        tab.wait(
            &format!("{expected} is shown"),
            &format!("{texts}.some((text) => text.endsWith({expected:?}))"),
        );
    }
    tab.wait(
        "the ban",
        "document.querySelector('#bans-table .who')?.textContent.includes('onerror=alert(4)')",
    );
    assert!(tab.text("#bans-table .rows .reason").contains(reason));
    // Their actions address them, whatever they are called.
    tab.click("[data-of-limit=login][data-caller*='alert(2)'] button[aria-label^='Reset ']");
    assert!(tab.text("#action-subject").contains(NAMES[1]));
    tab.click("#action-submit");
    tab.wait("a result", "document.querySelector('#action-result').classList.contains('good')");
    tab.click("#action-cancel");
    assert_eq!(tab.eval("document.querySelectorAll('img, script, iframe, a').length"), elements);
    assert_eq!(tab.eval("document.scrollingElement.scrollWidth <= innerWidth"), true);
    tab.resize(360, 800);
    tab.wait("it fits", "document.scrollingElement.scrollWidth <= innerWidth");
    tab.screenshot("hostile");
    tab.end(&[]);
}
