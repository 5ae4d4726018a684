//! Does a table at its capacity forget callers that it should know?
//!
//! Callers come one after the other, spend all they have and never return. Each
//! is live until it is refilled, and so many come in that time that just as many
//! are live, always, as the limiter was built for.

use std::ops::Range;
use std::time::Duration;

use spillgate::{Limiter, ManualClock, Quota};

use crate::keys::{Caller, FlatText, KeyBuffer, KeySet};
use crate::peer::Peer;
use crate::peers::Spillgate;
use crate::report::progress;
use crate::results::{Case, Measurement, Turnovers};
use crate::settings::Settings;

/// Between one caller and the next.
const STEP: Duration = Duration::from_micros(1);

pub fn measure(settings: &Settings) -> Result<Vec<Measurement>, spillgate::Error> {
    let callers = settings.population;
    let case = |turnovers| Case::LiveEvictions { callers, turnovers };
    let cases = [Turnovers::FirstTen, Turnovers::Eleventh].map(case);
    if !settings.has_peer(Spillgate::NAME) || !cases.iter().any(|case| settings.wants(case)) {
        return Ok(Vec::new());
    }
    progress(cases[0]);
    let quota = Quota::per(1, STEP * callers);
    let clock = ManualClock::default();
    let limiter =
        Limiter::<str>::builder(quota).capacity(callers as usize).clock(clock.clone()).build()?;
    let mut denied = 0;
    let mut live_evictions = |arrivals: Range<Caller>| {
        let before = limiter.evictions();
        for caller in arrivals.clone() {
            let keys = KeySet::new([caller]);
            denied += u32::from(limiter.check(FlatText::of(&keys).get(0)).is_denied());
            clock.advance(STEP);
        }
        1e4 * (limiter.evictions() - before) as f64 / arrivals.len() as f64
    };
    let turnovers = |turnovers: Range<u32>| turnovers.start * callers..turnovers.end * callers;
    live_evictions(turnovers(0..1)); // Fills the table.
    let shares = [turnovers(1..11), turnovers(11..12)].map(live_evictions);
    let flaw = (denied > 0).then(|| format!("denied {denied} callers it had not seen before"));
    let measurement = |(case, share)| Measurement {
        case,
        peer: Spillgate::NAME,
        rounds: vec![share],
        flaw: flaw.clone(),
    };
    Ok(cases.into_iter().zip(shares).map(measurement).collect())
}
