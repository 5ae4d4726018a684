//! Durations in a policy file.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Compiler;
use crate::config::spec::At;
use crate::duration::parse_duration;

/// A range of durations, and how it is written.
pub(super) struct Durations {
    pub(super) range: RangeInclusive<Duration>,
    pub(super) text: &'static str,
}

impl Compiler<'_> {
    /// The duration of a key within a range, or its default.
    pub(super) fn duration(
        &mut self,
        place: &str,
        key: &str,
        written: Option<&At<String>>,
        default: Duration,
        Durations { range, text }: &Durations,
    ) -> Duration {
        let Some(at) = written else { return default };
        let duration = match parse_duration(&at.value) {
            Ok(duration) if range.contains(&duration) => Ok(duration),
            Ok(_) => Err(format!("is out of range; use {text}")),
            Err(why) => Err(format!("is not a duration; {why}")),
        };
        let duration = duration.map_err(|why| format!("{place}, {key}: {:?} {why}", at.value));
        self.take(at, duration).unwrap_or(default)
    }
}
