use std::error::Error;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::escape::shown_json;
use super::print;
use super::remote::{Ask, ServerArgs, segment};
use super::table::table;

/// Show, set or lift bans of a running server
///
/// A caller is an address, key:NAME or user:NAME.
///
///   spillgate ban
///   spillgate ban add 203.0.113.50 --for 1h --reason 'credential stuffing'
///   spillgate ban lift 203.0.113.50
///
/// Adding a ban again replaces its end and reason. The token of the server is read from
/// SPILLGATE_TOKEN.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Bans {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print the server's JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Show the bans in force, by their end
    Show,
    /// Ban a caller, or replace the end and reason of its ban
    Add {
        /// Address, key:NAME or user:NAME
        caller: String,
        /// How long it lasts: 90s, 10m, 1h, 1d
        #[arg(long = "for", value_name = "DURATION")]
        ttl: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Lift the ban of a caller, and forget its strikes
    Lift {
        /// Address, key:NAME or user:NAME
        caller: String,
    },
}

const COLUMNS: &[(&str, &str)] = &[
    ("CALLER", "caller"),
    ("EXPIRES", "expires"),
    ("COUNT", "count"),
    ("MODE", "mode"),
    ("REASON", "reason"),
];

impl Bans {
    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn run(self) -> Result<(), Box<dyn Error>> {
        let remote = self.server.remote()?;
        let path = |caller: &str| format!("/v1/bans/{}", segment(caller));
        let answer = match &self.action {
            None | Some(Action::Show) => remote.send(Ask::new(Method::GET, "/v1/bans")).await?,
            Some(Action::Add { caller, ttl, reason }) => {
                let body = json!({ "ttl": ttl, "reason": reason });
                remote.send(Ask::new(Method::PUT, &path(caller)).body(&body)).await?
            }
            Some(Action::Lift { caller }) => {
                remote.send(Ask::new(Method::DELETE, &path(caller))).await?
            }
        };
        if self.json && !answer.is_empty() {
            return print(&format!("{}\n", shown_json(&answer)));
        }
        print(&match self.action {
            None | Some(Action::Show) => {
                let answer: Value = serde_json::from_str(&answer)?;
                table(&answer["bans"], COLUMNS, "no bans")?
            }
            Some(Action::Add { .. }) => {
                let answer: Value = serde_json::from_str(&answer)?;
                format!("banned until {}\n", answer["expires"].as_str().unwrap_or_default())
            }
            Some(Action::Lift { .. }) if self.json => return Ok(()),
            Some(Action::Lift { .. }) => "lifted\n".to_owned(),
        })
    }
}
