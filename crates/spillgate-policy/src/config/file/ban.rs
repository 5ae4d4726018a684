//! The `ban` of a limit.

use super::decode::status;
use super::section::Section;
use crate::config::spec::{BanSpec, MODE};

pub(super) fn ban(section: &mut Section<'_>) -> BanSpec {
    let on = section.value("on").map(|value| value.one_or_more("denied"));
    BanSpec {
        strikes: section.number("strikes", 1..=100, 5),
        window: section.text("window", "10m"),
        duration: section.text("duration", "10m"),
        factor: section.decimal("factor", 2.0),
        max: section.text("max", "1d"),
        decay: section.text("decay", "1d"),
        jitter: section.decimal("jitter", 0.1),
        on: on.iter().flatten().filter_map(status).collect(),
        refuse: section.text("refuse", "offence"),
        mode: section.word("mode", &MODE),
        status: section.number("status", 0..=999, 429),
        at: section.at(),
    }
}
