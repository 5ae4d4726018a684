//! Limits that no request meets: programs ask them by their name.

use super::Compiler;
use crate::config::spec::Limit;

impl Compiler<'_> {
    /// Whether the limit is by name only. What would be said of requests means nothing then.
    pub(super) fn is_by_name(&mut self, place: &str, limit: &Limit) -> bool {
        let Some(by_name) = limit.by_name.as_ref().filter(|at| at.value) else { return false };
        let matches = &limit.matches;
        let has_conditions = !matches.path.is_empty()
            || !matches.method.is_empty()
            || !matches.host.is_empty()
            || !matches.header.is_empty()
            || matches.domain.is_some()
            || matches.descriptor.is_some();
        let meaningless = [
            ("match", has_conditions, "no request meets it"),
            ("cost", limit.cost.is_some(), "whoever asks says what it costs"),
            ("settle", limit.settle.is_some(), "whoever asks settles it"),
        ];
        for (key, _, why) in meaningless.into_iter().filter(|(_, is_there, _)| *is_there) {
            self.report(
                by_name,
                format!("{place}: a limit that is by name has no `{key}`, since {why}; remove one"),
            );
        }
        true
    }
}
