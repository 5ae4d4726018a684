//! Who calls, how often, and under which address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use spillgate::{Clock, Limiter, Timestamp};

use crate::acts::{FLOOD_BEGINS, FLOOD_ENDS, LENGTH};
use crate::tally::Tally;

/// One row of the screen.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) name: &'static str,
    /// How it calls, in a few letters.
    pub(crate) habit: &'static str,
    schedule: Schedule,
    address: Address,
    tally: Mutex<Tally>,
}

/// `at_once` calls after each `every`, from the first moment to the last.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    at_once: u64,
    every: Duration,
    from: Duration,
    until: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Address {
    /// The same for every call.
    Own(Ipv4Addr),
    /// Another one for every call: who has one IPv6 network has 2⁶⁴ of them.
    Fresh,
}

impl Caller {
    /// Well inside its limit.
    pub(crate) fn steady() -> Self {
        let address = Ipv4Addr::new(192, 0, 2, 1);
        Self::on_schedule("steady", "8/s", 1, Duration::from_millis(125), address)
    }

    /// More at once than fits, and then a pause.
    pub(crate) fn bursty() -> Self {
        let address = Ipv4Addr::new(198, 51, 100, 2);
        Self::on_schedule("bursty", "30 at once", 30, Duration::from_millis(1_500), address)
    }

    /// Ten times its limit, all the time.
    pub(crate) fn greedy() -> Self {
        let address = Ipv4Addr::new(203, 0, 113, 3);
        Self::on_schedule("greedy", "100/s", 1, Duration::from_millis(10), address)
    }

    /// 300,000 per second, each from somewhere else.
    pub(crate) fn flood() -> Self {
        let every = Duration::from_millis(1);
        // The last call is made before the end, not at it.
        let until = FLOOD_ENDS - every;
        let schedule = Schedule { at_once: 300, every, from: FLOOD_BEGINS, until };
        Self {
            name: "flood",
            habit: "fresh keys",
            schedule,
            address: Address::Fresh,
            tally: Mutex::default(),
        }
    }

    fn on_schedule(
        name: &'static str,
        habit: &'static str,
        at_once: u64,
        every: Duration,
        address: Ipv4Addr,
    ) -> Self {
        let schedule = Schedule { at_once, every, from: Duration::ZERO, until: LENGTH };
        Self { name, habit, schedule, address: Address::Own(address), tally: Mutex::default() }
    }

    /// Makes all calls that are due by now.
    pub(crate) fn catch_up<C: Clock>(&self, limiter: &Limiter<IpAddr, C>, began: Timestamp) {
        let now = limiter.clock().now();
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let due = self.schedule.due(now.since(began)) - tally.asked;
        if due == 0 {
            return;
        }
        for _ in 0..due {
            let key = self.address.of_call(tally.asked);
            tally.count(&limiter.check(&key), began);
        }
        tally.busy += limiter.clock().now().since(now);
    }

    /// True if no call is due any more.
    pub(crate) fn is_done(&self, elapsed: Duration) -> bool {
        elapsed >= self.schedule.until
    }

    /// What it got so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The key under which the limiter knows it, if it has only one.
    pub(crate) fn key(&self) -> Option<IpAddr> {
        match self.address {
            Address::Own(address) => Some(address.into()),
            Address::Fresh => None,
        }
    }
}

impl Schedule {
    /// How many calls should have been made by then.
    fn due(&self, elapsed: Duration) -> u64 {
        let Some(since) = elapsed.min(self.until).checked_sub(self.from) else {
            return 0;
        };
        let rounds = since.as_nanos() / self.every.as_nanos() + 1;
        // A story of seconds has few rounds; more than fit are as many as fit.
        self.at_once * u64::try_from(rounds).unwrap_or(u64::MAX / self.at_once)
    }
}

impl Address {
    fn of_call(self, call: u64) -> IpAddr {
        /// The network for documentation.
        const NETWORK: u128 = 0x2001_0db8 << 96;
        match self {
            Self::Own(address) => address.into(),
            Self::Fresh => Ipv6Addr::from_bits(NETWORK | u128::from(call)).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_due_from_the_first_moment_to_the_last() {
        let due = |caller: Caller, millis| caller.schedule.due(Duration::from_millis(millis));
        assert_eq!(due(Caller::steady(), 0), 1);
        assert_eq!(due(Caller::steady(), 124), 1);
        assert_eq!(due(Caller::steady(), 125), 2);
        assert_eq!(due(Caller::bursty(), 1_500), 60);
        assert_eq!(due(Caller::greedy(), 10_000), 1_001);
        assert_eq!(due(Caller::greedy(), 99_000), 1_001);
        assert_eq!(due(Caller::flood(), 2_999), 0);
        assert_eq!(due(Caller::flood(), 3_000), 300);
        assert_eq!(due(Caller::flood(), 9_000), 1_500_000);
    }

    #[test]
    fn only_the_flood_changes_its_address() {
        let greedy = Caller::greedy().address;
        assert_eq!(greedy.of_call(0), greedy.of_call(1));
        let flood = Caller::flood().address;
        assert_ne!(flood.of_call(0), flood.of_call(1));
    }
}
