//! `spillgate top`: what a running server does, in a terminal.
//!
//! ```text
//! question ─▶ Status ─▶ State::apply ─┐
//!                                     ├─▶ ui::render ─▶ terminal
//! keys ─────▶ View::press ────────────┘
//!                 └─▶ Effect: a change of the server, quit, …
//! ```

mod caller_rates;
mod history;
mod keys;
mod pane;
mod plain;
mod question;
mod rows;
mod screen;
mod session;
mod state;
mod status;
#[cfg(test)]
mod testing;
mod ui;
mod view;

use std::error::Error;
use std::io::IsTerminal;

use clap::Args;
use http::Method;

use super::escape::shown_json;
use super::print;
use super::remote::{Ask, ServerArgs, segment};
use view::View;

/// Watch a running server: limits, denied callers, bans, load
///
///   spillgate top
///   spillgate top --server http://127.0.0.1:8390 --reveal
///   spillgate top --once
///   spillgate top --json --limit login --count 5
///
/// ? shows the keys. Names of callers that are secret are masked until they are revealed, which
/// needs the token of the server, as bans and resets do. It is read from SPILLGATE_TOKEN. If the
/// output is not a terminal, what there is now is printed as tables.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Top {
    #[command(flatten)]
    server: ServerArgs,
    /// Show names of callers in full; needs the token
    #[arg(long)]
    reveal: bool,
    /// Print tables, and exit
    #[arg(long, conflicts_with = "json")]
    once: bool,
    /// Print the server's JSON about the top callers, and exit
    #[arg(long)]
    json: bool,
    /// Only this limit; on the screen, those whose name contains this
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    /// How many callers to print
    #[arg(long, value_name = "NUMBER", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1024))]
    count: u32,
    /// Draw with ASCII characters only
    #[arg(long)]
    ascii: bool,
}

impl Top {
    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn run(self) -> Result<(), Box<dyn Error>> {
        let remote = self.server.remote()?;
        if self.reveal && !remote.has_token() {
            return Err("--reveal needs the server's token: set SPILLGATE_TOKEN".into());
        }
        if self.json {
            let limit = self.limit.map(|name| format!("&limit={}", segment(&name)));
            let reveal = if self.reveal { "&reveal=true" } else { "" };
            let path = format!("/v1/top?count={}{}{reveal}", self.count, limit.unwrap_or_default());
            let answer = remote.send(Ask::new(Method::GET, &path)).await?;
            return print(&format!("{}\n", shown_json(&answer)));
        }
        if self.once || !std::io::stdout().is_terminal() || is("TERM", "dumb") {
            let mut status = question::status(&remote, self.reveal).await?;
            let limit = self.limit.as_deref();
            limit.map_or(Ok(()), |name| plain::check_limit(&status, name))?;
            let count = usize::try_from(self.count).unwrap_or(usize::MAX);
            if limit.is_some() || count > status.top.callers.len() {
                // A status names a few callers of each limit.
                status.top = question::top(&remote, limit, self.count, self.reveal).await?;
            }
            return print(&plain::text(&status, limit, count)?);
        }
        let mut view = View::new(remote.authority());
        (view.has_token, view.reveal) = (remote.has_token(), self.reveal);
        view.filter = self.limit.unwrap_or_default();
        let abilities =
            ui::Abilities { colours: has_colours(), unicode: !self.ascii && has_unicode() };
        session::run(remote, view, abilities).await
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is(name: &str, value: &str) -> bool {
    variable(name).as_deref() == Some(value)
}

/// See <https://no-color.org>.
fn has_colours() -> bool {
    variable("NO_COLOR").is_none()
}

/// False if the locale says that it knows other characters. Without one, as in many containers,
/// nothing is known, and nearly all terminals can.
fn has_unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    locale.is_none_or(|locale| locale.to_lowercase().replace('-', "").contains("utf8"))
}
