use std::time::Duration;

use spillgate::Timestamp;

/// How fast a limit of the far side refills, measured.
///
/// What was spent so far plus what remains is all that the far side has supplied. Its slope is the
/// refill. Headers do not say it: a window that slides, one that is fixed and a bucket all announce the
/// same three numbers, and a bucket that refills in 200 ms announces a reset in one second.
#[derive(Debug, Default)]
pub(super) struct Supply {
    span: Option<Span>,
    jumped_at: Timestamp,
    per_second: f64,
}

/// A time over which the slope is measured: when, and how much was supplied until then.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: (Timestamp, i128),
    end: (Timestamp, i128),
    highest: i128,
}

/// What a response says of its limit.
pub(super) struct Sample {
    /// More than this at once may be a reset.
    pub(super) jump: u64,
    pub(super) window: Duration,
    /// True if there is no room for a refill.
    pub(super) is_full: bool,
}

/// Long enough for the noise of requests in flight to be small.
const SPAN: Duration = Duration::from_secs(1);

impl Supply {
    /// Adds what is supplied so far.
    pub(super) fn measure(&mut self, now: Timestamp, supplied: i128, sample: &Sample) {
        let before = self.span.filter(|span| !self.is_reset(span, now, supplied, sample));
        let Some(mut span) = before else {
            // What was measured until the reset counts, too: mostly, that nothing is refilled.
            self.finish(SPAN / 4, false);
            self.span =
                Some(Span { begin: (now, supplied), end: (now, supplied), highest: supplied });
            return;
        };
        span.end = (now, supplied);
        span.highest = span.highest.max(supplied);
        self.span = Some(span);
        if self.finish(SPAN, sample.is_full) {
            self.span = Some(Span { begin: span.end, end: span.end, highest: supplied });
        }
    }

    /// True if so much came at once that it is no refill. Two resets within a window are none.
    fn is_reset(&mut self, span: &Span, now: Timestamp, supplied: i128, sample: &Sample) -> bool {
        // Responses out of order make it fall, and rise again.
        let has_jumped = supplied - span.highest > i128::from(sample.jump);
        let since = now.since(self.jumped_at);
        if has_jumped {
            self.jumped_at = now;
        }
        has_jumped && since >= sample.window.mul_f64(0.7)
    }

    /// Takes over the slope of a span, if it is long enough. If the limit was full, nothing more could be
    /// supplied, and the slope is too low.
    fn finish(&mut self, shortest: Duration, is_full: bool) -> bool {
        let Some(Span { begin, end, .. }) = self.span else { return false };
        let time = end.0.since(begin.0);
        if time < shortest {
            return false;
        }
        let slope = ((end.1 - begin.1) as f64 / time.as_secs_f64()).max(0.0);
        self.per_second = match is_full {
            true => self.per_second.max(slope),
            false if self.per_second == 0.0 => slope,
            false => (self.per_second + slope) / 2.0,
        };
        true
    }

    /// The far side has refused: there is less than was thought.
    pub(super) fn refuse(&mut self) {
        self.per_second /= 2.0;
        self.span = None;
    }

    pub(super) fn per_second(&self) -> f64 {
        self.per_second
    }
}
