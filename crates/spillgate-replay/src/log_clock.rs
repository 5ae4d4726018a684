//! How far a log has come.

/// The time of the latest line of a log. A line that is far ahead of others counts once another one
/// agrees: one wrong time must not make all that follows late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogClock {
    newest: u64,
    /// A time far ahead, which may be a mistake.
    ahead: Option<u64>,
}

impl LogClock {
    /// The second of the latest line; 0 if there is none yet.
    #[inline]
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// A line of this second. Lines may be out of order by `window` seconds.
    #[inline]
    pub(crate) fn note(&mut self, second: u64, window: u64) {
        if second <= self.newest {
            self.ahead = None;
        } else if second - self.newest <= window {
            (self.newest, self.ahead) = (second, None);
        } else {
            self.leap(second, window);
        }
    }

    fn leap(&mut self, second: u64, window: u64) {
        match self.ahead {
            Some(ahead) if ahead.abs_diff(second) <= window => {
                (self.newest, self.ahead) = (ahead.max(second), None);
            }
            // Of two different ones, the first is right: there are gaps in quiet logs.
            Some(ahead) if ahead < second => (self.newest, self.ahead) = (ahead, Some(second)),
            _ => self.ahead = Some(second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(seconds: &[u64]) -> Vec<u64> {
        let mut clock = LogClock::default();
        let note = |second: &u64| {
            clock.note(*second, 60);
            clock.newest()
        };
        seconds.iter().map(note).collect()
    }

    #[test]
    fn a_leap_counts_once_another_line_agrees() {
        assert_eq!(newest(&[1000, 1001, 1002]), [0, 1001, 1002]);
        assert_eq!(newest(&[1000, 1000, 9_000_000, 1002, 1061]), [0, 1000, 1000, 1002, 1061]);
        assert_eq!(newest(&[9_000_000, 1000, 1001]), [0, 0, 1001]);
        // A gap, and a quiet log.
        assert_eq!(newest(&[1000, 1000, 5000, 5001]), [0, 1000, 1000, 5001]);
        assert_eq!(newest(&[1000, 2000, 3000, 4000]), [0, 1000, 2000, 3000]);
        // A step back of less than the window.
        assert_eq!(newest(&[1000, 1001, 950, 1002]), [0, 1001, 1001, 1002]);
    }
}
