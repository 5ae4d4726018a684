use std::collections::BTreeMap;
use std::error::Error;
use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use http::Method;
use serde_json::json;
use spillgate_policy::Gate;

use super::print;
use super::remote::{Ask, Remote};
use crate::protocol::http::explain;
use crate::settings::{Flags, Source};

/// Explain how a request or a call of Envoy would be decided, without spending quota
///
/// Shows the caller, the limits that apply, and what each decides. With a file, all quotas are full:
///
///   spillgate explain --config spillgate.toml --path /users/7 --ip 203.0.113.7
///   spillgate explain --config spillgate.toml --method POST --path /login \
///     --header 'x-api-key: k1' --ip 203.0.113.7
///
/// With a running server, and its counters:
///
///   SPILLGATE_TOKEN=… spillgate explain --server http://127.0.0.1:8390 --path / --ip 203.0.113.7
///
/// For the descriptors of a call of Envoy, whose rules can also be a directory of
/// envoyproxy/ratelimit files: entries have commas between them, and \, is a comma in a value
///
///   spillgate explain -c /etc/ratelimit --domain edge --descriptor remote_address=203.0.113.7 \
///     --descriptor path=/login,method=POST
///
/// With a JSON request as for /v1/explain; - reads standard input:
///
///   spillgate explain -c spillgate.toml --json '{"request":{"path":"/","ip":"203.0.113.7"}}'
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("by").required(true).args(["config", "server"]))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["path", "domain", "json"]))]
pub(super) struct Explain {
    /// Configuration file, or envoyproxy/ratelimit files
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// URL of a running server
    #[arg(long, short, value_name = "URL")]
    server: Option<String>,
    /// Bearer token of the server
    // Accepted without --server: the variable may be set for other commands.
    #[arg(long, env = "SPILLGATE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// CA certificate (PEM) of the server, for https://
    #[arg(long, value_name = "FILE", requires = "server")]
    ca: Option<PathBuf>,
    /// Request method
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Request path
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Host header
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Request header; can be repeated
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// Client address
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// Domain of descriptors, in place of a request
    #[arg(long, value_name = "DOMAIN", requires = "descriptor")]
    #[arg(conflicts_with_all = ["method", "host", "header", "ip"])]
    domain: Option<String>,
    /// Descriptor; can be repeated
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = descriptor, requires = "domain")]
    descriptor: Vec<Entries>,
    /// How often each descriptor counts; 0 only looks
    #[arg(long, value_name = "NUMBER", requires = "domain")]
    hits: Option<u64>,
    /// JSON request, in place of the flags above
    #[arg(long, value_name = "JSON", conflicts_with_all = ["method", "host", "header", "ip"])]
    json: Option<String>,
}

impl Explain {
    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn run(self) -> Result<(), Box<dyn Error>> {
        let request = self.request()?;
        let explanation = match (&self.server, self.config) {
            (Some(server), _) => {
                let remote = Remote::new(server, self.token.as_deref(), self.ca.as_deref())?;
                let ask = Ask::new(Method::POST, "/v1/explain").body(&request);
                remote.send(ask.accept("text/plain")).await?
            }
            (None, Some(file)) => {
                let policy = Source::file_or_rules(file, Flags::default()).policy()?;
                let gate = Gate::new(policy)?;
                explain(&gate, request.as_bytes()).await?
            }
            (None, None) => return Err("add --config FILE or --server URL".into()),
        };
        print(&explanation)
    }

    /// The request, as `/v1/explain` takes it.
    fn request(&self) -> Result<String, Box<dyn Error>> {
        match self.json.as_deref() {
            Some("-") => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text)?;
                Ok(text)
            }
            Some(json) => Ok(json.to_owned()),
            None if self.domain.is_some() => {
                let descriptors: Vec<_> = self
                    .descriptor
                    .iter()
                    .map(|entries| {
                        let entries: Vec<_> = entries
                            .0
                            .iter()
                            .map(|(key, value)| json!({ "key": key, "value": value }))
                            .collect();
                        json!({ "entries": entries, "hits_addend": self.hits })
                    })
                    .collect();
                Ok(json!({ "domain": self.domain, "descriptors": descriptors }).to_string())
            }
            None => {
                let mut headers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
                for (name, value) in &self.header {
                    headers.entry(name).or_default().push(value);
                }
                let mut request = json!({ "method": self.method, "path": self.path });
                request["headers"] = json!(headers);
                for (name, value) in [("host", json!(self.host)), ("ip", json!(self.ip))] {
                    if !value.is_null() {
                        request[name] = value;
                    }
                }
                Ok(json!({ "request": request }).to_string())
            }
        }
    }
}

/// The entries of a descriptor.
#[derive(Clone)]
struct Entries(Vec<(String, String)>);

/// Entries with commas between them.
fn descriptor(text: &str) -> Result<Entries, &'static str> {
    let (mut texts, mut rest) = (vec![String::new()], text.chars().peekable());
    while let Some(it) = rest.next() {
        match it {
            ',' => texts.push(String::new()),
            _ => {
                let escaped = if it == '\\' { rest.next_if_eq(&',') } else { None };
                texts.last_mut().ok_or(ENTRIES)?.push(escaped.unwrap_or(it));
            }
        }
    }
    let entry = |text: &String| {
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty())?;
        Some((key.to_owned(), value.to_owned()))
    };
    texts.iter().map(entry).collect::<Option<_>>().map(Entries).ok_or(ENTRIES)
}

const ENTRIES: &str = "write \"key=value\", or several with commas between them";

fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("write \"name: value\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_split_at_commas_and_the_first_sign() {
        let entries = |text| descriptor(text).map(|entries| entries.0);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for (text, expected) in [
            ("a=1", vec![pair("a", "1")]),
            ("a=1,b=2=3", vec![pair("a", "1"), pair("b", "2=3")]),
            (r"a=1\,2,b=", vec![pair("a", "1,2"), pair("b", "")]),
            (r"a=\x\", vec![pair("a", r"\x\")]),
        ] {
            assert_eq!(entries(text), Ok(expected), "{text}");
        }
        for wrong in ["", "a", "=1", "a=1,", "a=1,,b=2"] {
            assert!(entries(wrong).is_err(), "{wrong}");
        }
    }
}
