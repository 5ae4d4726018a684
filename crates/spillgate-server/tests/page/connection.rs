//! The page while the server is away, and while its reader is.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::spawn;

use spillgate_testing::Port;

use super::operator::enter;
use super::tab::Tab;
use super::{POLICY, by, start};
use crate::common::server::Home;
use crate::operate::clients::Http;

#[test]
fn after_a_restart_of_the_server_the_page_reconnects_and_forgets_a_token_that_is_refused() {
    let (home, port) = (Home::new(POLICY), Port::reserve());
    let address = port.to_string();
    let server = home.start(&["--http", &address]);
    let mut tab = Tab::live(&server.url("/"));
    enter(&mut tab, server.token());
    tab.wait(
        "the token is taken",
        "document.querySelector('#open-token').textContent === 'Token ✓'",
    );
    Http::connect(server.http).unwrap().post(&by("203.0.113.7")).unwrap();
    tab.wait(
        "a number",
        "document.querySelector('[data-limit=api][data-field=allowed]').dataset.value === '1'",
    );
    server.stop();
    tab.wait("the loss is shown", "document.querySelector('#connection').dataset.state === 'lost'");
    assert!(tab.text("#connection").contains("Reconnecting"));
    tab.wait("old numbers are marked", "document.body.classList.contains('stale')");
    tab.screenshot("lost");

    let server = home.start(&["--http", &address]);
    tab.click("#retry");
    tab.wait("the page is live", "document.querySelector('#connection').dataset.state === 'live'");
    tab.wait(
        "numbers of the new server",
        "document.querySelector('[data-limit=api][data-field=allowed]').dataset.value === '0'",
    );
    tab.wait(
        "the token is forgotten",
        "document.querySelector('#open-token').textContent === 'Enter token'",
    );
    Http::connect(server.http).unwrap().post(&by("203.0.113.7")).unwrap();
    tab.wait(
        "a number",
        "document.querySelector('[data-limit=api][data-field=allowed]').dataset.value === '1'",
    );
    assert_eq!(tab.eval("document.body.classList.contains('stale')"), false);
    tab.end(&["ERR_", "401", "503"]);
}

#[test]
fn a_paused_page_stands_still_and_catches_up() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    tab.click("#pause");
    assert!(tab.text("#connection-text").starts_with("Paused at "));
    let mut http = Http::connect(server.http).unwrap();
    for _ in 0..6 {
        http.post(&by("203.0.113.7")).unwrap();
    }
    // Two more statuses come, and are not shown.
    tab.eval("fetch('v1/status', { headers: { accept: 'text/event-stream' } }).then(async (response) => { const reader = response.body.getReader(); \
        let text = ''; const decoder = new TextDecoder(); while (text.split('event: status').length < 4) \
        text += decoder.decode((await reader.read()).value, { stream: true }); await reader.cancel(); })");
    assert_eq!(tab.text("[data-limit=api][data-field=denied]"), "0 total");
    tab.click("#pause");
    tab.wait(
        "it catches up",
        "document.querySelector('[data-limit=api][data-field=denied]').textContent === '1 total'",
    );
    tab.end(&[]);
}

#[test]
fn a_server_on_the_network_shows_nothing_before_the_token_is_entered() {
    let home = Home::new(
        &POLICY
            .replace("http = '127.0.0.1:0'", "http = '0.0.0.0:0'\ntoken = '0123456789abcdef0123'"),
    );
    let mut command = crate::common::server::spillgate();
    command.arg("serve").arg("--config").arg(home.path("spillgate.toml"));
    let server = crate::common::server::Server::start(command);
    let mut tab = Tab::open(&format!("http://127.0.0.1:{}/", server.http.port()));
    tab.wait("it asks", "document.querySelector('#locked')?.checkVisibility() === true");
    assert_eq!(tab.eval("document.querySelector('#content').checkVisibility()"), false);
    tab.screenshot("locked");
    tab.click("#locked-open");
    tab.write("0123456789abcdef0123");
    tab.press("Enter");
    tab.wait(
        "numbers",
        "document.querySelector('#content').checkVisibility() && \
        document.querySelector('[data-now=allowed]').textContent === '0'",
    );
    assert_eq!(tab.eval("document.querySelector('#locked').checkVisibility()"), false);
    tab.end(&["401"]);
}

/// Watches until the socket is shut down.
fn watch(address: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    let request = "GET /v1/status HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    socket.write_all(request.as_bytes()).unwrap();
    let mut watched = socket.try_clone().unwrap();
    spawn(move || std::io::copy(&mut watched, &mut std::io::sink()));
    socket
}

#[test]
fn who_is_one_too_many_to_watch_is_told_so() {
    let (_home, server) = start();
    let mut tab = Tab::live(&server.url("/"));
    // As many as may watch, this page included.
    let watchers: Vec<_> = (0..64).map(|_| watch(server.http)).collect();
    let status = "fetch('v1/status', { headers: { accept: 'text/event-stream' } }).then((answer) => { \
        answer.body.cancel(); return answer.status === 503; })";
    tab.wait("nobody else may watch", status);
    tab.call("Page.reload", &serde_json::json!({}));
    tab.wait(
        "it is told so",
        "document.querySelector('#connection-text')?.textContent.startsWith('too many clients')",
    );
    for watcher in watchers {
        watcher.shutdown(Shutdown::Both).unwrap();
    }
    tab.wait("then it may", "document.querySelector('#connection').dataset.state === 'live'");
    tab.end(&["503"]);
}
