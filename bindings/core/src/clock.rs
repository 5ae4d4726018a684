use spillgate::{Clock, ManualClock, SystemClock, Timestamp};

/// The clock of a limiter: the system's, or one that the program moves.
#[derive(Clone, Debug, Default)]
pub enum AnyClock {
    /// See [`SystemClock`].
    #[default]
    System,
    /// See [`ManualClock`].
    Manual(ManualClock),
}

impl Clock for AnyClock {
    #[inline(always)]
    fn now(&self) -> Timestamp {
        match self {
            Self::System => SystemClock.now(),
            Self::Manual(clock) => clock.now(),
        }
    }
}
