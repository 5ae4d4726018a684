//! All there is to see at one moment.

use std::net::IpAddr;
use std::time::Duration;

use spillgate::{Clock, Decision, Limiter, Quota};

use crate::acts::{Act, act_at};
use crate::callers::Caller;
use crate::tally::Tally;

#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) elapsed: Duration,
    pub(crate) act: &'static Act,
    pub(crate) quota: Quota,
    pub(crate) rows: Vec<Row>,
    pub(crate) table: TableState,
    /// Nanoseconds per decision about a caller never seen.
    pub(crate) fresh_nanos: Option<u128>,
    /// Bytes of the whole process.
    pub(crate) resident: Option<u64>,
}

/// One caller.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) habit: &'static str,
    pub(crate) tally: Tally,
    /// What a call would be answered now. Who has many keys has many answers.
    pub(crate) standing: Option<Decision>,
}

/// Where the limiter keeps its callers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableState {
    pub(crate) capacity: u64,
    pub(crate) slots: u64,
    /// How many callers have something spent.
    pub(crate) live: u64,
    pub(crate) evictions: u64,
}

impl Moment {
    pub(crate) fn of<C: Clock>(
        limiter: &Limiter<IpAddr, C>,
        callers: &[Caller],
        elapsed: Duration,
        resident: Option<u64>,
    ) -> Self {
        let row = |caller: &Caller| Row {
            name: caller.name,
            habit: caller.habit,
            tally: caller.tally(),
            standing: caller.key().map(|key| limiter.peek(&key)),
        };
        let rows: Vec<Row> = callers.iter().map(row).collect();
        let fresh = rows.iter().find(|row| row.standing.is_none());
        Self {
            elapsed,
            act: act_at(elapsed),
            quota: limiter.quota(),
            fresh_nanos: fresh.and_then(|row| row.tally.nanos_a_call()),
            rows,
            table: TableState::of(limiter),
            resident,
        }
    }

    /// The callers that have one key, and so one allowance.
    pub(crate) fn callers(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.standing.is_some())
    }

    pub(crate) fn tally_of(&self, name: &str) -> Tally {
        let row = self.rows.iter().find(|row| row.name == name);
        row.map(|row| row.tally.clone()).unwrap_or_default()
    }
}

impl TableState {
    /// A fingerprint and a word, of 64 bits each, are all that is kept of a caller.
    const BYTES_A_SLOT: u64 = 16;

    fn of<C: Clock>(limiter: &Limiter<IpAddr, C>) -> Self {
        Self {
            live: limiter.active_callers() as u64,
            evictions: limiter.evictions(),
            capacity: limiter.table().capacity() as u64,
            slots: limiter.table().slots() as u64,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.slots * Self::BYTES_A_SLOT
    }
}
