use std::fmt;

use redis::aio::MultiplexedConnection;
use redis::{cmd, pipe};

use super::bed::{Bed, CALLERS};
use crate::Result;

/// Ways to decide, or to do less than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Tollgate, one round trip a decision.
    Strict,
    /// The same script with the same arguments, by nothing but a client.
    Script,
    /// The least that can be asked.
    Get,
    /// A window counted as in many a tutorial, in one round trip.
    Incr,
    /// Tollgate, with slices.
    Leased,
}

impl Contender {
    pub const ALL: [Self; 5] = [Self::Strict, Self::Script, Self::Get, Self::Incr, Self::Leased];

    pub fn about(self) -> &'static str {
        match self {
            Self::Strict => "`Gate::check_limit` of a strict limit, 1,000 callers",
            Self::Script => {
                "the same script with the same arguments by `redis`'s `MultiplexedConnection`"
            }
            Self::Get => "`GET` of a key that is not there, by the same client",
            Self::Incr => "`INCR` and `EXPIRE` in a pipeline, by the same client: a fixed window",
            Self::Leased => "`Gate::check_limit` of a leased limit, eight callers",
        }
    }

    /// Under how many callers it is asked.
    fn callers(self) -> usize {
        if self == Self::Leased { 8 } else { CALLERS }
    }

    /// So many calls are timed together: where a call takes no longer than to read a clock,
    /// not each can be.
    pub fn timed(self) -> usize {
        if self == Self::Leased { 64 } else { 1 }
    }

    /// Asks once. Everything must pass.
    pub async fn ask(
        self,
        bed: &Bed,
        client: &mut MultiplexedConnection,
        turn: usize,
    ) -> Result<()> {
        let caller = turn % self.callers();
        match self {
            Self::Strict => check(bed, "strict", caller).await,
            Self::Leased => check(bed, "leased", caller).await,
            Self::Script => {
                let (key, asked) = &bed.bare.calls[caller];
                let mut call = cmd("EVALSHA");
                call.arg(&bed.bare.script).arg(1).arg(key).arg(asked);
                let _: Vec<u8> = call.query_async(client).await?;
                Ok(())
            }
            Self::Get => Ok(cmd("GET").arg(caller).query_async(client).await?),
            Self::Incr => {
                let key = format!("window:{caller}");
                let mut calls = pipe();
                calls.cmd("INCR").arg(&key).cmd("EXPIRE").arg(&key).arg(60).ignore();
                let _: (u64,) = calls.query_async(client).await?;
                Ok(())
            }
        }
    }
}

async fn check(bed: &Bed, limit: &str, caller: usize) -> Result<()> {
    let decision = bed.gate.check_limit(limit, &[&bed.callers[caller]], 1).await?;
    if decision.is_denied() {
        return Err(format!("{limit}: denied with plenty left").into());
    }
    Ok(())
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "Tollgate, strict",
            Self::Script => "bare script",
            Self::Get => "GET",
            Self::Incr => "INCR and EXPIRE",
            Self::Leased => "Tollgate, leased",
        })
    }
}
