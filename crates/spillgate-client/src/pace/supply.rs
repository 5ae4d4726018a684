use std::time::Duration;

use spillgate::Timestamp;

/// How fast a limit of the far side refills, measured.
///
/// What was spent so far plus what remains is all that the far side has supplied. Its slope is the
/// refill. Headers do not say it: a window that slides, one that is fixed and a bucket all announce the
/// same three numbers, and a bucket that refills in 200 ms announces a reset in one second.
#[derive(Debug, Default)]
pub(super) struct Supply {
    anchor: Option<(Timestamp, i128)>,
    last: i128,
    per_second: f64,
}

/// Long enough for the noise of requests in flight to be small.
const SPAN: Duration = Duration::from_secs(1);

impl Supply {
    /// Adds what is supplied so far. More than `jump` at once is a reset, and no refill. `is_full` says
    /// that nothing more could be supplied for a while: then the slope is too low.
    pub(super) fn measure(&mut self, now: Timestamp, supplied: i128, jump: u64, is_full: bool) {
        let is_reset = supplied - self.last > i128::from(jump);
        self.last = supplied;
        let anchor = self.anchor.filter(|_| !is_reset);
        let (then, before) = *self.anchor.insert(anchor.unwrap_or((now, supplied)));
        let time = now.since(then);
        if time < SPAN {
            return;
        }
        let slope = ((supplied - before) as f64 / time.as_secs_f64()).max(0.0);
        self.per_second = match is_full {
            true => self.per_second.max(slope),
            false if self.per_second == 0.0 => slope,
            false => (self.per_second + slope) / 2.0,
        };
        self.anchor = Some((now, supplied));
    }

    pub(super) fn per_second(&self) -> f64 {
        self.per_second
    }
}
