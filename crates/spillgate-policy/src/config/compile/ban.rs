//! The `ban` of a limit.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::StatusCode;

use super::Compiler;
use super::duration::Durations;
use super::limit::statuses;
use crate::Mode;
use crate::config::spec::{At, BanSpec, Limit};
use crate::policy::ban::{BanRule, BanTerms, MOST_STRIKES};
use crate::policy::part::{Part, per_text};
use crate::policy::settle::Statuses;
use crate::suggest::hint;

/// What is refused, as a file writes it. True for what comes after the offence.
pub(crate) const REFUSE: [(&str, bool); 2] = [("offence", false), ("next", true)];

const DURATIONS: Durations = Durations {
    range: Duration::from_secs(1)..=Duration::from_secs(365 * 24 * 60 * 60),
    text: "1s to 365d",
};

impl Compiler<'_> {
    /// Whom the limit bans, if it does.
    pub(super) fn ban(&mut self, place: &str, limit: &Limit, per: &[Part]) -> Option<BanTerms> {
        let ban = limit.ban.as_ref()?;
        let part = self.banned_part(place, ban, limit, per);
        let place = &format!("{place}, ban");
        let rule = self.ban_rule(place, ban);
        let (on_denied, statuses) = self.offences(place, &ban.on);
        self.expect_responses(place, limit, ban);
        let refuses_next = self.word(place, "refuse", ban.refuse.as_ref(), &REFUSE);
        if let Some(at) = ban.refuse.as_ref().filter(|_| refuses_next && !on_denied) {
            let why = "`refuse = \"next\"` is about requests that exceed the limit, and these are \
                       no offence here; add \"denied\" to `on`, or remove `refuse`";
            self.report(at, format!("{place}: {why}"));
        }
        let mode = ban.mode.as_ref().map(|at| at.value).unwrap_or_default();
        self.check_modes(place, limit, refuses_next, mode);
        let status = self.ban_status(place, ban.status.as_ref());
        let counters = Default::default();
        let parts = per.len();
        Some(BanTerms {
            rule,
            part: part?,
            parts,
            on_denied,
            statuses,
            refuses_next,
            mode,
            status,
            counters,
        })
    }

    /// The part of `per` that names who is banned.
    fn banned_part(
        &mut self,
        place: &str,
        ban: &BanSpec,
        limit: &Limit,
        per: &[Part],
    ) -> Option<usize> {
        if limit.matches.domain.is_some() || limit.matches.descriptor.is_some() {
            let why = "descriptors have no caller who could be banned; remove `ban`";
            self.report(&ban.at, format!("{place}, ban: {why}"));
            return None;
        }
        let part = per.iter().position(Part::is_identity);
        let is_global = |part: &At<String>| part.value == "global";
        // Parts that could not be understood were reported.
        let is_whole =
            |written: &Vec<At<String>>| written.len() == per.len() || written.iter().any(is_global);
        if part.is_none() && limit.per.as_ref().is_none_or(is_whole) {
            let why = format!(
                "the limit is counted per {}, which names no caller who could be banned; add \
                 \"caller\", \"ip\", \"api-key\" or \"user\" to `per`",
                per_text(per)
            );
            self.report(&ban.at, format!("{place}, ban: {why}"));
        }
        part
    }

    fn ban_rule(&mut self, place: &str, ban: &BanSpec) -> BanRule {
        let strikes = self.strikes(place, ban);
        let default = BanRule::new(strikes);
        let duration =
            self.duration(place, "duration", ban.duration.as_ref(), default.duration, &DURATIONS);
        let max =
            self.duration(place, "max", ban.max.as_ref(), default.max.max(duration), &DURATIONS);
        if let Some(at) = ban.max.as_ref().filter(|_| max < duration) {
            let why = format!(
                "{:?} is less than the `duration` of the first ban, {duration:?}; write at least \
                 that",
                at.value
            );
            self.report(at, format!("{place}, max: {why}"));
        }
        BanRule {
            strikes,
            window: self.duration(place, "window", ban.window.as_ref(), default.window, &DURATIONS),
            duration,
            factor: self.decimal(place, "factor", ban.factor.as_ref(), 1.0..=100.0, default.factor),
            max,
            decay: self.duration(place, "decay", ban.decay.as_ref(), default.decay, &DURATIONS),
            jitter: self.decimal(place, "jitter", ban.jitter.as_ref(), 0.0..=1.0, default.jitter),
        }
    }

    fn strikes(&mut self, place: &str, ban: &BanSpec) -> u32 {
        match &ban.strikes {
            Some(at) if (1..=MOST_STRIKES).contains(&at.value) => at.value,
            Some(at) => {
                let message = format!("{place}, strikes: {} is out of range", at.value);
                self.report(at, format!("{message}; use 1 to {MOST_STRIKES}"));
                1
            }
            None => {
                // A number that could not be read was reported.
                if !self.is_partial {
                    let why = "there is no `strikes`; add strikes = 5";
                    self.report(&ban.at, format!("{place}: {why}"));
                }
                1
            }
        }
    }

    fn decimal(
        &mut self,
        place: &str,
        key: &str,
        written: Option<&At<f64>>,
        range: RangeInclusive<f64>,
        default: f64,
    ) -> f64 {
        let Some(at) = written else { return default };
        if !range.contains(&at.value) {
            let (least, most) = range.into_inner();
            let message = format!("{place}, {key}: {} is out of range", at.value);
            self.report(at, format!("{message}; use {least} to {most}"));
            return default;
        }
        at.value
    }

    /// Whether denials are offences, and which statuses are.
    fn offences(&mut self, place: &str, on: &[At<String>]) -> (bool, Vec<Statuses>) {
        let (mut on_denied, mut all) = (on.is_empty(), Vec::new());
        for at in on {
            match at.value.as_str() {
                "denied" => on_denied = true,
                "report" => {}
                text => {
                    let status = statuses(text).map_err(|_| {
                        let hint = hint(text, ["denied", "report"]);
                        format!(
                            "{place}, on: unknown {text:?}{hint}; write \"denied\", \"report\", or \
                             statuses such as 401 or \"4xx\""
                        )
                    });
                    all.extend(self.take(at, status));
                }
            }
        }
        (on_denied, all)
    }

    /// Statuses are those of responses, which a limit that is only asked by its name never sees.
    fn expect_responses(&mut self, place: &str, limit: &Limit, ban: &BanSpec) {
        if limit.by_name.as_ref().is_none_or(|at| !at.value) {
            return;
        }
        let is_status = |at: &&At<String>| statuses(&at.value).is_ok();
        if let Some(at) = ban.on.iter().find(is_status) {
            let why = "a limit that is only asked by its name sees no response; write \"denied\", \
                       or \"report\" and report offences";
            self.report(at, format!("{place}, on: {why}"));
        }
    }

    /// A limit in shadow mode refuses nobody, so its bans must not either, unless that is what
    /// `refuse` says.
    fn check_modes(&mut self, place: &str, limit: &Limit, refuses_next: bool, mode: Mode) {
        let Some(at) = &limit.mode else { return };
        match (at.value, refuses_next) {
            (Mode::Shadow, false) if mode == Mode::Enforce => self.report(
                at,
                format!(
                    "{place}: the limit is in shadow mode and its ban is not; write mode = \
                     \"shadow\" in `ban` too, or refuse = \"next\" if banned callers alone are to \
                     be refused"
                ),
            ),
            (Mode::Enforce, true) => self.report(
                at,
                format!(
                    "{place}: mode = \"enforce\" refuses what exceeds the limit, and refuse = \
                     \"next\" lets it pass; remove one"
                ),
            ),
            _ => {}
        }
    }

    fn ban_status(&mut self, place: &str, written: Option<&At<u16>>) -> StatusCode {
        match written {
            None => StatusCode::TOO_MANY_REQUESTS,
            Some(At { value: 429, .. }) => StatusCode::TOO_MANY_REQUESTS,
            Some(At { value: 403, .. }) => StatusCode::FORBIDDEN,
            Some(at) => {
                let message = format!("{place}, status: {} is neither 429 nor 403", at.value);
                self.report(at, format!("{message}; write one of them"));
                StatusCode::TOO_MANY_REQUESTS
            }
        }
    }
}
