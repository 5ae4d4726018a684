use std::collections::BTreeMap;
use std::error::Error;
use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use http::Method;
use serde_json::json;
use spillgate_policy::{Gate, PolicyFile};

use super::print;
use super::remote::{Ask, Remote};
use crate::protocol::http::explain;

/// Explain how a request would be decided, without spending quota
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
/// With a JSON request as for /v1/explain; - reads standard input:
///
///   spillgate explain -c spillgate.toml --json '{"request":{"path":"/","ip":"203.0.113.7"}}'
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("by").required(true).args(["config", "server"]))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["path", "json"]))]
pub(super) struct Explain {
    /// Configuration file
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
                let gate = Gate::new(PolicyFile::read(file)?.policy()?)?;
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

fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("write \"name: value\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
