use std::collections::BTreeMap;
use std::error::Error;
use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use spillgate_policy::{Gate, PolicyFile};

use super::print;
use super::remote::Remote;
use crate::protocol::http;

/// Says why a request would be decided as it would: who is calling, which limits it meets,
/// and what each says. Nothing is spent
///
/// By a file, as if nobody had spent anything yet:
///
///   spillgate explain --config spillgate.toml --path /users/7 --ip 203.0.113.7
///   spillgate explain --config spillgate.toml --method POST --path /login \
///     --header 'x-api-key: k1' --ip 203.0.113.7
///
/// By a running server, with what has been spent:
///
///   SPILLGATE_TOKEN=… spillgate explain --server http://127.0.0.1:8390 --path / --ip 203.0.113.7
///
/// With a request in JSON, as /v1/explain takes it; - reads it from standard input:
///
///   spillgate explain -c spillgate.toml --json '{"request":{"path":"/","ip":"203.0.113.7"}}'
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("by").required(true).args(["config", "server"]))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["path", "json"]))]
pub(super) struct Explain {
    /// The file whose policy decides
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server that decides
    #[arg(long, short, value_name = "URL")]
    server: Option<String>,
    /// The server's token
    // Also where there is no server: the variable may be set for other commands.
    #[arg(long, env = "SPILLGATE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// A certificate, in PEM, that the server's must lead to, if its URL is of https
    #[arg(long, value_name = "FILE", requires = "server")]
    ca: Option<PathBuf>,
    /// The request's method
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Its path
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// The host it is for
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// A header; can be given several times
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// The address at the other end of the connection
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// The request in JSON, instead of the five above
    #[arg(long, value_name = "JSON", conflicts_with_all = ["method", "host", "header", "ip"])]
    json: Option<String>,
}

impl Explain {
    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn run(self) -> Result<(), Box<dyn Error>> {
        let request = self.request()?;
        let explanation = match (&self.server, self.config) {
            (Some(server), _) => {
                let remote = Remote::new(server, self.ca.as_deref())?;
                remote.explain(self.token.as_deref(), request).await?
            }
            (None, Some(file)) => {
                let gate = Gate::new(PolicyFile::read(file)?.policy()?)?;
                http::explain(&gate, request.as_bytes()).await?
            }
            (None, None) => return Err("say by what: --config FILE or --server URL".into()),
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
