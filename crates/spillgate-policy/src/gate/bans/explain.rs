//! What an explanation says of a ban.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::Banned;
use crate::Mode;

/// The ban of a request's caller.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct BanExplanation {
    /// Who is banned, its secrets as a fingerprint.
    pub caller: String,
    /// Why: what an operator wrote, or the name of the limit.
    pub reason: String,
    /// How many bans there were for that, with this one.
    pub count: u32,
    /// Whether it refuses.
    pub mode: Mode,
    /// The time until it ends, in seconds.
    #[serde(serialize_with = "seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub ends_in: Duration,
}

impl From<Banned> for BanExplanation {
    fn from(Banned { ban, rest }: Banned) -> Self {
        Self {
            caller: ban.caller.to_string(),
            reason: ban.reason().to_owned(),
            count: ban.count,
            mode: ban.mode,
            ends_in: rest,
        }
    }
}

/// Writes a time in seconds, rounded up to a millisecond.
fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_nanos().div_ceil(1_000_000) as f64 / 1000.0)
}

impl fmt::Display for BanExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caller, reason, count, mode, ends_in } = self;
        let shadow = if *mode == Mode::Shadow { " (shadow)" } else { "" };
        let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
        let ends_in =
            Duration::from_secs(ends_in.as_secs() + u64::from(ends_in.subsec_nanos() > 0));
        writeln!(f, "ban      {caller}{shadow}: {reason}, {times}, ends in {ends_in:?}")
    }
}
