use std::error::Error;

use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use serde_json::Value;

use super::escape::shown_json;
use super::print;
use super::remote::{Ask, ServerArgs, segment};
use super::table::table;
use super::terms::TermsArgs;

/// Show or change the allow and block lists of a running server
///
/// An entry is an address, a range, key:NAME or user:NAME.
///
///   spillgate list block
///   spillgate list block add 203.0.113.50 --for 1h --comment 'port scan'
///   spillgate list block remove 203.0.113.50
///
/// Adding an entry again replaces its expiry and comment. The token of the server is read from
/// SPILLGATE_TOKEN.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct List {
    /// Which list
    #[arg(value_name = "LIST")]
    list: Name,
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print the server's JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    Allow,
    Block,
}

#[derive(Subcommand)]
enum Action {
    /// Show the entries
    Show,
    /// Add an entry, or replace its expiry and comment
    Add {
        /// Address, range, key:NAME or user:NAME
        entry: String,
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// Remove an entry
    Remove {
        /// Address, range, key:NAME or user:NAME
        entry: String,
    },
}

const COLUMNS: &[(&str, &str)] =
    &[("ENTRY", "entry"), ("EXPIRES", "expires"), ("SOURCE", "source"), ("COMMENT", "comment")];

impl List {
    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn run(self) -> Result<(), Box<dyn Error>> {
        let remote = self.server.remote()?;
        let list = match self.list {
            Name::Allow => "/v1/lists/allow",
            Name::Block => "/v1/lists/block",
        };
        let path = |entry: &str| format!("{list}/{}", segment(entry));
        let answer = match &self.action {
            None | Some(Action::Show) => remote.send(Ask::new(Method::GET, list)).await?,
            Some(Action::Add { entry, terms }) => {
                let body = Value::Object(terms.body());
                remote.send(Ask::new(Method::PUT, &path(entry)).body(&body)).await?
            }
            Some(Action::Remove { entry }) => {
                remote.send(Ask::new(Method::DELETE, &path(entry))).await?
            }
        };
        if self.json {
            return print(&format!("{}\n", shown_json(&answer)));
        }
        let answer: Value = serde_json::from_str(&answer)?;
        let changed = answer["changed"] == true;
        print(&match self.action {
            None | Some(Action::Show) => table(&answer["entries"], COLUMNS, "no entries")?,
            Some(Action::Add { .. }) if changed => "added\n".to_owned(),
            Some(Action::Add { .. }) => "unchanged: it was there\n".to_owned(),
            Some(Action::Remove { .. }) if changed => "removed\n".to_owned(),
            Some(Action::Remove { .. }) => "unchanged: it was not there\n".to_owned(),
        })
    }
}
