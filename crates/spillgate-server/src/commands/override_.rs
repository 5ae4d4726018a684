use std::error::Error;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::Value;

use super::escape::shown_json;
use super::print;
use super::remote::{Ask, ServerArgs, segment};
use super::table::table;
use super::terms::TermsArgs;

/// Show or change the quotas of single callers on a running server
///
///   spillgate override list
///   spillgate override set api user:42 '100/s burst 200' --for 1d --comment trial
///   spillgate override remove api user:42
///
/// If a limit is counted per several parts, the others follow as --part. The key of a global limit
/// is global. The token of the server is read from SPILLGATE_TOKEN.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Override {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    server: ServerArgs,
    /// Print the server's JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Show the callers that have their own quota
    List {
        /// Limit [default: all]
        limit: Option<String>,
    },
    /// Give a caller its own quota, or replace it
    Set {
        #[command(flatten)]
        caller: CallerArgs,
        /// Quota, such as '100/s burst 200'
        quota: String,
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// Remove a caller's own quota that was set at run time
    Remove {
        #[command(flatten)]
        caller: CallerArgs,
    },
}

/// Whose quota.
#[derive(Args)]
struct CallerArgs {
    /// Limit
    limit: String,
    /// Key of the caller, such as user:42
    key: String,
    /// Further part of the key, in order; can be repeated
    #[arg(long, value_name = "TEXT")]
    part: Vec<String>,
}

impl CallerArgs {
    fn path(&self) -> String {
        let query: Vec<_> =
            self.part.iter().map(|part| format!("part={}", segment(part))).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        format!("/v1/limits/{}/keys/{}/override{query}", segment(&self.limit), segment(&self.key))
    }
}

const COLUMNS: &[(&str, &str)] = &[
    ("LIMIT", "limit"),
    ("KEY", "key"),
    ("QUOTA", "quota"),
    ("EXPIRES", "expires"),
    ("SOURCE", "source"),
    ("COMMENT", "comment"),
];

impl Override {
    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn run(self) -> Result<(), Box<dyn Error>> {
        let remote = self.server.remote()?;
        match &self.action {
            Action::List { limit } => {
                let path = match limit {
                    Some(limit) => format!("/v1/limits/{}/overrides", segment(limit)),
                    None => "/v1/overrides".to_owned(),
                };
                let answer = remote.send(Ask::new(Method::GET, &path)).await?;
                if self.json {
                    return print(&format!("{}\n", shown_json(&answer)));
                }
                let answer: Value = serde_json::from_str(&answer)?;
                print(&table(&answer["overrides"], COLUMNS, "no overrides")?)
            }
            Action::Set { caller, quota, terms } => {
                let mut body = terms.body();
                body.insert("quota".to_owned(), quota.as_str().into());
                let path = caller.path();
                let ask = Ask::new(Method::PUT, &path).body(&Value::Object(body));
                remote.send(ask).await?;
                print("set\n")
            }
            Action::Remove { caller } => {
                remote.send(Ask::new(Method::DELETE, &caller.path())).await?;
                print("removed\n")
            }
        }
    }
}
