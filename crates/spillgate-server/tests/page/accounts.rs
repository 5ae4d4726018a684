//! What a page asked for and complained of.

use std::fmt;

use serde_json::Value;

#[derive(Default)]
pub(crate) struct Accounts {
    pub(crate) origin: String,
    requests: Vec<String>,
    /// Errors and warnings of console and log, exceptions, dialogs.
    complaints: Vec<String>,
}

impl Accounts {
    /// Notes an event.
    pub(crate) fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                self.requests
                    .push(params["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            "Runtime.exceptionThrown" => {
                self.complaints.push(format!("exception: {}", params["exceptionDetails"]));
            }
            "Runtime.consoleAPICalled"
                if ["error", "warning", "assert"].iter().any(|kind| params["type"] == *kind) =>
            {
                self.complaints.push(format!("console: {}", params["args"]));
            }
            "Log.entryAdded" if params["entry"]["level"] != "info" => {
                let entry = &params["entry"];
                self.complaints.push(format!("log: {} {}", entry["text"], entry["url"]));
            }
            "Page.javascriptDialogOpening" => {
                self.complaints.push(format!("dialog: {}", params["message"]));
            }
            _ => {}
        }
    }

    /// Fails if anything left the origin, or on a complaint that has none of these texts.
    pub(crate) fn check(&self, expected: &[&str]) {
        let is_own = |url: &&String| {
            url.strip_prefix(&self.origin).is_some_and(|rest| rest.starts_with('/'))
        };
        let elsewhere: Vec<_> = self.requests.iter().filter(|url| !is_own(url)).collect();
        assert!(elsewhere.is_empty(), "requests left the origin: {elsewhere:?}");
        assert!(self.requests.len() > 10, "a page and its files were loaded: {:?}", self.requests);
        let is_expected =
            |complaint: &&String| expected.iter().any(|text| complaint.contains(text));
        let complaints: Vec<_> =
            self.complaints.iter().filter(|complaint| !is_expected(complaint)).collect();
        assert!(complaints.is_empty(), "the page complains: {complaints:#?}");
    }
}

impl fmt::Display for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "requests: {:#?}\ncomplaints: {:#?}", self.requests, self.complaints)
    }
}
