//! What the limiter promises, checked against what it did.

use spillgate::Quota;

use crate::memory::Footprint;
use crate::moment::Moment;
use crate::style::bytes;
use crate::tally::{Span, Tally};

#[derive(Debug)]
pub(crate) struct Promise {
    pub(crate) kept: bool,
    pub(crate) text: String,
}

pub(crate) fn check(last: &Moment, footprint: Footprint) -> Vec<Promise> {
    let (quota, greedy) = (&last.quota, last.tally_of("greedy"));
    let mut promises: Vec<_> =
        last.callers().map(|row| limited(row.name, &row.tally, quota)).collect();
    promises.push(unhindered("steady", &last.tally_of("steady")));
    promises.push(throttled("greedy", &greedy, quota));
    promises.extend(flat(footprint));
    promises.push(emptied(last));
    promises
}

/// No caller gets more than its burst and what is refilled.
fn limited(name: &str, tally: &Tally, quota: &Quota) -> Promise {
    let Some(span) = tally.whole else { return never_called(name) };
    let most = span.most(quota);
    let text = format!(
        "{name} got {:>3} of at most {most}: {} at once, {} more in {}",
        span.admitted,
        span.at_first,
        most - span.at_first,
        seconds(&span),
    );
    Promise { kept: span.is_kept(quota), text }
}

/// A caller that stays below its limit is never turned away.
fn unhindered(name: &str, tally: &Tally) -> Promise {
    let (asked, denied) = (tally.asked, tally.denied());
    let text = format!("{name} was denied {denied} of {asked} calls: it stayed below its limit");
    Promise { kept: asked > 0 && denied == 0, text }
}

/// A flood does not free those who are throttled.
fn throttled(name: &str, tally: &Tally, quota: &Quota) -> Promise {
    let Some(span) = tally.flood else { return never_called(name) };
    let text = format!(
        "{name} got {:>3} of at most {} in the flood's {}: it was not forgotten",
        span.admitted,
        span.most(quota),
        seconds(&span),
    );
    Promise { kept: span.is_kept(quota), text }
}

/// A flood takes no memory.
fn flat(footprint: Footprint) -> Option<Promise> {
    /// Threads and the screen take some. To keep the flood's keys, and nothing but
    /// those, would take more than twenty times as much.
    const NOISE: u64 = 1 << 20;
    let (before, most) = (footprint.before?, footprint.most?);
    let (now, then) = (bytes(most), bytes(before));
    let text = format!("the process took {now} in the flood, and {then} before it");
    Some(Promise { kept: most <= before + NOISE, text })
}

/// Callers that have all their tokens back take no room.
fn emptied(last: &Moment) -> Promise {
    let (live, callers) = (last.table.live, last.callers().count() as u64);
    let text = format!("the table emptied by itself: {live} callers have something spent");
    Promise { kept: live <= callers, text }
}

fn never_called(name: &str) -> Promise {
    Promise { kept: false, text: format!("{name} never called") }
}

/// Not rounded: in the time shown, so much was refilled.
fn seconds(span: &Span) -> String {
    let hundredths = span.length().as_millis() / 10;
    format!("{}.{:02} s", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Story;

    #[test]
    fn who_never_called_has_proved_nothing() {
        let unplayed = Story::on_manual_clock().unwrap().moment(None);
        let broken = check(&unplayed, Footprint::default()).iter().filter(|p| !p.kept).count();
        assert_eq!(broken, 5);
    }

    #[test]
    fn a_process_that_grows_is_noticed() {
        let footprint = |most| Footprint { before: Some(3_000_000), most: Some(most) };
        assert!(flat(footprint(3_100_000)).unwrap().kept);
        assert!(!flat(footprint(100_000_000)).unwrap().kept);
    }
}
