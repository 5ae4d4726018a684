use std::net::SocketAddr;

use tokio::time::Instant;

use super::error::CommandError;
use super::stats::Tally;
use super::transaction::Transaction;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) peer: Option<SocketAddr>,
    pub(super) since: Instant,
    pub(super) is_authenticated: bool,
    /// True if the client has authenticated with the server's token.
    pub(super) is_operator: bool,
    /// What the client calls itself, or nothing.
    pub(super) name: String,
    /// What waits for `EXEC`, after a `MULTI`.
    pub(super) transaction: Option<Box<Transaction>>,
    pub(super) tally: Tally,
}

impl Session {
    /// Names the client; an empty name takes the name away.
    pub(super) fn set_name(&mut self, name: &[u8]) -> Result<(), CommandError> {
        name_like("Client names", name)?.clone_into(&mut self.name);
        Ok(())
    }
}

/// A word that is fit to stand in a list of clients.
pub(super) fn name_like<'a>(what: &str, text: &'a [u8]) -> Result<&'a str, CommandError> {
    // The server keeps it for as long as the client stays.
    const LONGEST: usize = 256;
    if text.len() > LONGEST {
        return Err(CommandError::new(format_args!(
            "{what} cannot be longer than {LONGEST} bytes."
        )));
    }
    let text = std::str::from_utf8(text)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    text.ok_or_else(|| {
        CommandError::new(format_args!(
            "{what} cannot contain spaces, newlines or special characters."
        ))
    })
}
