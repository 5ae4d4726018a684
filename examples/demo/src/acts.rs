//! When what happens, and what to look at meanwhile.

use std::time::Duration;

pub(crate) const FLOOD_BEGINS: Duration = Duration::from_secs(3);
pub(crate) const FLOOD_ENDS: Duration = Duration::from_secs(8);
pub(crate) const LENGTH: Duration = Duration::from_secs(10);

/// A part of the story.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) name: &'static str,
    pub(crate) until: Duration,
    pub(crate) text: [&'static str; 2],
}

pub(crate) const ACTS: [Act; 3] = [
    Act {
        name: "calm",
        until: FLOOD_BEGINS,
        text: [
            "Each caller may spend 20 at once, and 10 per second after that. steady stays",
            "below that; bursty and greedy ask for more, and get exactly their due.",
        ],
    },
    Act {
        name: "flood",
        until: FLOOD_ENDS,
        text: [
            "300,000 calls/s, each under a new key. A new caller is admitted, but the",
            "table does not grow for it, and no throttled caller is evicted.",
        ],
    },
    Act {
        name: "after",
        until: LENGTH,
        text: [
            "The flood's keys are back at their full quota, so they count as never seen:",
            "their slots are free again. No sweep, no TTL.",
        ],
    },
];

/// The act that is on at a time.
pub(crate) fn act_at(elapsed: Duration) -> &'static Act {
    let [.., last] = &ACTS;
    ACTS.iter().find(|act| elapsed < act.until).unwrap_or(last)
}
