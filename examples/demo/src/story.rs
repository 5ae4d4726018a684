//! One limiter and those who call it, by either clock.

use std::net::IpAddr;
use std::time::Duration;
use std::{io, thread};

use spillgate::{Clock, Error, KeyedState, Limiter, ManualClock, Seed, SystemClock, Timestamp};

use crate::acts::LENGTH;
use crate::callers::Caller;
use crate::memory::{self, Footprint};
use crate::moment::Moment;
use crate::promises::{self, Promise};
use crate::screen::Screen;

const QUOTA: &str = "10/s burst 20";

/// Far fewer than the callers that the flood has at any time.
const CAPACITY: usize = 10_000;

/// How often callers look at the clock.
const STEP: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Story<C> {
    limiter: Limiter<IpAddr, C>,
    callers: [Caller; 4],
    began: Timestamp,
}

/// How it came out.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) promises: Vec<Promise>,
    /// Nanoseconds per decision about a caller that is known.
    pub(crate) known: Option<u128>,
    /// Nanoseconds per decision about one that is not, in a full table.
    pub(crate) fresh: Option<u128>,
}

impl Story<SystemClock> {
    pub(crate) fn on_system_clock() -> Result<Self, Error> {
        Self::new(SystemClock, KeyedState::new())
    }

    /// Plays in real time, with a thread for each caller.
    pub(crate) fn perform(&self, screen: &mut Screen) -> io::Result<Ending> {
        let mut footprint = Footprint::default();
        thread::scope(|scope| {
            for caller in &self.callers {
                scope.spawn(|| self.call_until_done(caller));
            }
            for time in screen.times() {
                thread::sleep(time.saturating_sub(self.elapsed()));
                let moment = self.moment(memory::resident());
                footprint.note(&moment);
                screen.show(&moment)?;
            }
            io::Result::Ok(())
        })?;
        self.end(screen, memory::resident(), footprint)
    }

    fn call_until_done(&self, caller: &Caller) {
        while !caller.is_done(self.elapsed()) {
            caller.catch_up(&self.limiter, self.began);
            thread::sleep(STEP);
        }
        caller.catch_up(&self.limiter, self.began);
    }
}

impl Story<ManualClock> {
    pub(crate) fn on_manual_clock() -> Result<Self, Error> {
        // Who is evicted depends on the hash of a key. With a seed that is not
        // random, it is always the same.
        let hasher = KeyedState::with_seed(Seed::from_bytes(*b"always the same."));
        Self::new(ManualClock::default(), hasher)
    }

    /// Plays step by step, and moves the clock in between.
    pub(crate) fn rehearse(&self, screen: &mut Screen) -> io::Result<Ending> {
        let times = screen.times();
        loop {
            for caller in &self.callers {
                caller.catch_up(&self.limiter, self.began);
            }
            if times.contains(&self.elapsed()) {
                screen.show(&self.moment(None))?;
            }
            if self.elapsed() >= LENGTH {
                return self.end(screen, None, Footprint::default());
            }
            self.limiter.clock().advance(STEP);
        }
    }
}

impl<C: Clock> Story<C> {
    fn new(clock: C, hasher: KeyedState) -> Result<Self, Error> {
        let began = clock.now();
        let limiter =
            Limiter::builder(QUOTA).capacity(CAPACITY).hasher(hasher).clock(clock).build()?;
        let callers = [Caller::steady(), Caller::bursty(), Caller::greedy(), Caller::flood()];
        Ok(Self { limiter, callers, began })
    }

    fn elapsed(&self) -> Duration {
        self.limiter.clock().now().since(self.began)
    }

    pub(crate) fn moment(&self, resident: Option<u64>) -> Moment {
        Moment::of(&self.limiter, &self.callers, self.elapsed(), resident)
    }

    fn end(
        &self,
        screen: &mut Screen,
        resident: Option<u64>,
        footprint: Footprint,
    ) -> io::Result<Ending> {
        let last = self.moment(resident);
        screen.show(&last)?;
        Ok(Ending {
            promises: promises::check(&last, footprint),
            known: self.nanos_a_known_call(),
            fresh: last.fresh_nanos,
        })
    }

    /// Asks for one caller many times more, now that nobody counts its calls. The
    /// median of some batches, as any of them may have been interrupted.
    fn nanos_a_known_call(&self) -> Option<u128> {
        const BATCHES: usize = 11;
        const CALLS: u32 = 100_000;
        let key = self.callers.iter().find_map(Caller::key)?;
        let mut batches = [(); BATCHES].map(|()| {
            let began = self.elapsed();
            for _ in 0..CALLS {
                // Only the time it takes is of interest.
                let _ = self.limiter.check(&key);
            }
            (self.elapsed() - began).as_nanos() / u128::from(CALLS)
        });
        batches.sort_unstable();
        Some(batches[BATCHES / 2]).filter(|nanos| *nanos > 0)
    }
}
