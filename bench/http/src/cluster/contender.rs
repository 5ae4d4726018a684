use std::fmt;

use redis::aio::MultiplexedConnection;
use redis::{cmd, pipe};
use spillgate_policy::LimitCheck;

use super::bed::{Bed, CALLERS};
use crate::Result;

/// Ways to decide, or to do less than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Spillgate, one round trip a decision.
    Strict,
    /// The same script with the same arguments, by nothing but a client.
    Script,
    /// The least that can be asked.
    Get,
    /// A window counted as in many a tutorial, in one round trip.
    Incr,
    /// Spillgate, with slices.
    Leased,
    /// A strict limit of callers who hardly ever come again.
    ColdStrict,
    /// A leased one of such callers.
    ColdLeased,
}

/// How many callers there are where each hardly ever comes again.
const COLD: usize = 100_000;

impl Contender {
    pub const ALL: [Self; 7] = [
        Self::Strict,
        Self::Script,
        Self::Get,
        Self::Incr,
        Self::Leased,
        Self::ColdStrict,
        Self::ColdLeased,
    ];

    pub fn about(self) -> &'static str {
        match self {
            Self::Strict => "`Gate::decide` of a strict limit, 1,000 callers",
            Self::Script => {
                "the same script with the same arguments by `redis`'s `MultiplexedConnection`"
            }
            Self::Get => "`GET` of a key that is not there, by the same client",
            Self::Incr => "`INCR` and `EXPIRE` in a pipeline, by the same client: a fixed window",
            Self::Leased => "`Gate::decide` of a leased limit, eight callers",
            Self::ColdStrict => "`Gate::decide` of a strict limit, 100,000 callers in turn",
            Self::ColdLeased => "`Gate::decide` of a leased limit, 100,000 callers in turn",
        }
    }

    /// Under how many callers it is asked.
    fn callers(self) -> usize {
        match self {
            Self::Leased => 8,
            Self::ColdStrict | Self::ColdLeased => COLD,
            _ => CALLERS,
        }
    }

    /// Whose turn it is in a call of a task. Tasks begin in different places, so that they meet
    /// by chance only; and a cold caller is as likely to come at any time.
    pub fn turn(self, task: usize, call: usize) -> usize {
        match self {
            Self::ColdStrict | Self::ColdLeased => {
                ((task << 32) | call).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24
            }
            _ => task * 37 + call,
        }
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
            Self::Strict => check(bed, "strict", &bed.callers[caller]).await,
            Self::Leased => check(bed, "leased", &bed.callers[caller]).await,
            Self::ColdStrict => check(bed, "strict", &format!("cold {caller}")).await,
            Self::ColdLeased => check(bed, "leased", &format!("cold {caller}")).await,
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

async fn check(bed: &Bed, limit: &str, caller: &str) -> Result<()> {
    let outcome = bed.gate.decide(&LimitCheck::new(limit, &[caller], 1)).await?;
    if !outcome.is_allowed() {
        return Err(format!("{limit}: denied with plenty left").into());
    }
    Ok(())
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "Spillgate, strict",
            Self::Script => "bare script",
            Self::Get => "GET",
            Self::Incr => "INCR and EXPIRE",
            Self::Leased => "Spillgate, leased",
            Self::ColdStrict => "Spillgate, strict, cold",
            Self::ColdLeased => "Spillgate, leased, cold",
        })
    }
}
