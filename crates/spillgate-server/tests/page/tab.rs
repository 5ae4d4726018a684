//! A tab of the browser, driven over the DevTools protocol, and what went wrong in it.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use super::accounts::Accounts;
use super::browser::Browser;
use crate::common::server::until;

/// Has storage of its own, as a private window does. Ends with the test.
pub(crate) struct Tab {
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    context: String,
    last: u64,
    pub(super) accounts: Accounts,
    browser: Arc<Browser>,
}

/// Tells what the page was kept from doing, which a log may leave out.
const VIOLATIONS: &str = "addEventListener('securitypolicyviolation', (event) =>
    console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));";

impl Tab {
    /// Opens a page.
    pub(crate) fn open(url: &str) -> Self {
        let browser = Browser::shared();
        let (address, path) = browser.endpoint().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (socket, _) = client(format!("ws://{address}{path}"), stream).unwrap();
        let (context, accounts) = (String::new(), Accounts::default());
        let mut tab = Self { socket, session: None, context, last: 0, accounts, browser };
        let context = tab.call("Target.createBrowserContext", &json!({}));
        tab.context = context["browserContextId"].as_str().unwrap().to_owned();
        let blank = json!({ "url": "about:blank", "browserContextId": tab.context });
        let target = tab.call("Target.createTarget", &blank)["targetId"].clone();
        let attach = json!({ "targetId": target, "flatten": true });
        let attached = tab.call("Target.attachToTarget", &attach);
        tab.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Runtime", "Log", "Network", "Page"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        tab.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": VIOLATIONS }));
        tab.resize(1280, 900);
        tab.accounts.origin = url.trim_end_matches('/').to_owned();
        tab.call("Page.navigate", &json!({ "url": url }));
        tab
    }

    /// Opens a server's page and waits for its first numbers.
    pub(crate) fn live(url: &str) -> Self {
        let mut tab = Self::open(url);
        tab.wait(
            "the page is live",
            "document.querySelector('#connection')?.dataset.state === 'live'",
        );
        tab.wait("numbers", "document.querySelector('[data-now=allowed]')?.textContent !== '–'");
        tab
    }

    /// Sends a command and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut command = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(command.to_string())).unwrap();
        loop {
            let message = self.socket.read().unwrap_or_else(|error| panic!("{method}: {error}"));
            let Message::Text(text) = message else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            if message["method"] == "Page.javascriptDialogOpening" {
                // Else everything waits for it.
                let close = json!({ "id": 0, "method": "Page.handleJavaScriptDialog",
                    "params": { "accept": false }, "sessionId": self.session });
                self.socket.send(Message::text(close.to_string())).unwrap();
            }
            self.accounts.note(&message);
        }
    }

    /// The value of an expression in the page, which may be a promise.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", &params);
        let exception = &result["exceptionDetails"];
        assert!(exception.is_null(), "{expression}\n{exception:#}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&mut self, what: &str, expression: &str) {
        until(what, || self.eval(expression) == true);
    }

    /// The text of the first element that a selector finds; empty if there is none.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found = self.eval(&format!("document.querySelector({selector:?})?.textContent ?? ''"));
        found.as_str().unwrap().to_owned()
    }

    /// Waits until an element is to be seen and stands still, and clicks it as a mouse does.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = format!(
            "(async () => {{ const node = document.querySelector({selector:?}); \
             if (!node?.checkVisibility()) return null; node.scrollIntoView({{ block: 'center' }}); \
             const middle = () => {{ const {{ x, y, width, height }} = node.getBoundingClientRect(); \
               return [x + width / 2, y + height / 2]; }}; \
             const before = middle(); \
             await new Promise((resolve) => setTimeout(resolve, 60)); const now = middle(); \
             const isThere = before.join() === now.join() \
               && node.contains(document.elementFromPoint(...now)); \
             return isThere ? now : null; }})()"
        );
        let mut found = Value::Null;
        until(selector, || {
            found = self.eval(&place);
            !found.is_null()
        });
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let params = json!({ "type": kind, "x": found[0], "y": found[1],
                "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &params);
        }
    }

    /// Types into what has the focus.
    pub(crate) fn write(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Presses a key: Tab, Shift+Tab, Enter, Escape, an arrow.
    pub(crate) fn press(&mut self, key: &str) {
        let (key, modifiers) = key.strip_prefix("Shift+").map_or((key, 0), |key| (key, 8));
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            _ => panic!("no code for the key {key}"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let params = json!({ "type": kind, "key": key, "code": key, "text": text,
                "windowsVirtualKeyCode": code, "modifiers": modifiers });
            self.call("Input.dispatchKeyEvent", &params);
        }
    }

    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &params);
    }

    /// Prefers `light` or `dark`.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    /// Writes what the whole page looks like into the target folder.
    pub(crate) fn screenshot(&mut self, name: &str) -> PathBuf {
        let shot = self.call("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let folder = folder.join("page-screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}.png"));
        std::fs::write(&file, base64(shot["data"].as_str().unwrap())).unwrap();
        file
    }

    /// Ends the test: nothing went wrong in the page but what is expected, and nothing left the origin.
    pub(crate) fn end(mut self, expected: &[&str]) {
        // What is still under way is noted.
        self.eval("new Promise((resolve) => setTimeout(resolve, 50))");
        let session = self.session.take();
        let targets = self.call("Target.getTargets", &json!({}));
        self.session = session;
        let own = |target: &&Value| {
            target["type"] == "page" && target["browserContextId"] == *self.context
        };
        let windows = targets["targetInfos"].as_array().unwrap().iter().filter(own).count();
        assert_eq!(windows, 1, "the page opened another: {targets:#}");
        self.accounts.check(expected);
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}\n{}", self.accounts, self.browser.log());
        }
        self.last += 1;
        let params = json!({ "browserContextId": self.context });
        let close =
            json!({ "id": self.last, "method": "Target.disposeBrowserContext", "params": params });
        let _ = self.socket.send(Message::text(close.to_string()));
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let group = |group: &[u8]| {
        let digits: Vec<_> = group.iter().filter(|byte| **byte != b'=').collect();
        let bits = digits.iter().fold(0, |bits, byte| bits << 6 | digit(**byte));
        let bits = bits << (6 * (4 - digits.len()));
        bits.to_be_bytes()[1..digits.len()].to_vec()
    };
    text.as_bytes().chunks(4).flat_map(group).collect()
}
