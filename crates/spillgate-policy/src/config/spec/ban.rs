#[cfg(feature = "schema")]
use super::settle::OneOrMoreStatuses;
use super::{At, Mode, all};

/// When callers who offend against a limit are banned, and for how long. Durations are texts:
/// `30s`, `10m`, `1h`, `1d`.
///
/// ```
/// use spillgate_policy::{BanSpec, Limit};
///
/// // Five failed logins within ten minutes: an hour, then two, then four, up to a day.
/// let login = Limit::new("login", "100/min")
///     .path("/login")
///     .per(["ip"])
///     .ban(BanSpec::new(5).on(["401", "403"]).duration("1h"));
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Ban", rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", schemars(deny_unknown_fields))]
#[must_use = "it does nothing until it is part of a limit"]
pub struct BanSpec {
    /// So many offences within the window start a ban: 1 to 100.
    #[cfg_attr(feature = "schema", schemars(with = "u32"))]
    pub(crate) strikes: Option<At<u32>>,
    /// How long an offence counts. Default: `10m`.
    pub(crate) window: Option<At<String>>,
    /// How long the first ban lasts. Default: `10m`.
    pub(crate) duration: Option<At<String>>,
    /// By what each further ban is longer: 1 to 100. Default: 2.
    pub(crate) factor: Option<At<f64>>,
    /// The longest ban. Default: `1d`, or `duration` if that is longer.
    pub(crate) max: Option<At<String>>,
    /// After so long without an offence since the end of the last ban, earlier bans are forgotten.
    /// Default: `1d`.
    pub(crate) decay: Option<At<String>>,
    /// Up to this share of its duration, a ban lasts longer: 0 to 1. Default: 0.
    pub(crate) jitter: Option<At<f64>>,
    /// What is an offence: `denied`, statuses of responses (`401`, `4xx`), or `report` for reports
    /// of a program alone. Reports always count. Default: `denied`.
    #[cfg_attr(feature = "schema", schemars(default, with = "Option<OneOrMoreStatuses>"))]
    pub(crate) on: Vec<At<String>>,
    /// What is refused: `offence`, the request that exceeds the limit, as without a ban; or `next`,
    /// only requests of banned callers. Default: `offence`.
    pub(crate) refuse: Option<At<String>>,
    /// `enforce`, or `shadow`: ban, count and log, but refuse nobody for it. Default: `enforce`.
    pub(crate) mode: Option<At<Mode>>,
    /// The status with which banned callers are refused: 429 or 403. Default: 429.
    pub(crate) status: Option<At<u16>>,
    /// Where it begins in the file.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) at: At<()>,
}

impl BanSpec {
    /// Bans after so many offences within ten minutes: for ten minutes, and twice as long each
    /// time, up to a day.
    pub fn new(strikes: u32) -> Self {
        Self { strikes: Some(At::from(strikes)), ..Self::blank(At::from(())) }
    }

    pub(crate) fn blank(at: At<()>) -> Self {
        Self {
            strikes: None,
            window: None,
            duration: None,
            factor: None,
            max: None,
            decay: None,
            jitter: None,
            on: Vec::new(),
            refuse: None,
            mode: None,
            status: None,
            at,
        }
    }

    /// Sets how long an offence counts. Default: `10m`.
    pub fn window(self, window: impl Into<String>) -> Self {
        Self { window: Some(At::from(window.into())), ..self }
    }

    /// Sets how long the first ban lasts. Default: `10m`.
    pub fn duration(self, duration: impl Into<String>) -> Self {
        Self { duration: Some(At::from(duration.into())), ..self }
    }

    /// Sets by what each further ban is longer: 1 to 100. Default: 2.
    pub fn factor(self, factor: f64) -> Self {
        Self { factor: Some(At::from(factor)), ..self }
    }

    /// Sets the longest ban. Default: `1d`, or the first ban's duration if that is longer.
    pub fn max(self, max: impl Into<String>) -> Self {
        Self { max: Some(At::from(max.into())), ..self }
    }

    /// Sets after how long without an offence since the end of the last ban earlier bans are
    /// forgotten. Default: `1d`.
    pub fn decay(self, decay: impl Into<String>) -> Self {
        Self { decay: Some(At::from(decay.into())), ..self }
    }

    /// Lets bans last longer at random, up to this share of their duration: 0 to 1. Then those who
    /// were banned together do not return together. Default: 0.
    pub fn jitter(self, share: f64) -> Self {
        Self { jitter: Some(At::from(share)), ..self }
    }

    /// Says what is an offence: `denied`, statuses (`401`, `4xx`), `report`. Default: `denied`.
    pub fn on<T: Into<String>>(self, offences: impl IntoIterator<Item = T>) -> Self {
        Self { on: all(offences), ..self }
    }

    /// Lets requests that exceed the limit go ahead: only banned callers are refused.
    pub fn refuse_next(self) -> Self {
        Self { refuse: Some(At::from("next".to_owned())), ..self }
    }

    /// Sets whether banned callers are refused. Default: they are.
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode: Some(At::from(mode)), ..self }
    }

    /// Sets the status with which banned callers are refused: 429 or 403. Default: 429.
    pub fn status(self, status: u16) -> Self {
        Self { status: Some(At::from(status)), ..self }
    }
}
