//! The servers that are compared: the same but for their layer.

use std::fmt;

use crate::settings::Settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    NoopLayer,
    Spillgate,
    SpillgateXHeaders,
    SpillgateNoHeaders,
    SpillgateMetrics,
    TowerGovernor,
    TowerGovernorNoHeaders,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::NoopLayer,
        Self::Spillgate,
        Self::SpillgateXHeaders,
        Self::SpillgateNoHeaders,
        Self::SpillgateMetrics,
        Self::TowerGovernor,
        Self::TowerGovernorNoHeaders,
    ];

    /// Those whose name after `prefix` is asked for, and the plain one to compare them with.
    pub fn wanted(settings: &Settings, prefix: &str) -> Vec<Self> {
        let is_wanted = |kind: &Self| settings.wants(&format!("{prefix} {kind}"));
        if !Self::ALL.iter().any(is_wanted) {
            return Vec::new();
        }
        Self::ALL.into_iter().filter(|kind| *kind == Self::Plain || is_wanted(kind)).collect()
    }

    pub fn parse(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("no server is called {name}; there are {known}")
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::NoopLayer => "noop-layer",
            Self::Spillgate => "spillgate",
            Self::SpillgateXHeaders => "spillgate-x-headers",
            Self::SpillgateNoHeaders => "spillgate-no-headers",
            Self::SpillgateMetrics => "spillgate-metrics",
            Self::TowerGovernor => "tower-governor",
            Self::TowerGovernorNoHeaders => "tower-governor-no-headers",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Self::Plain => "no layer",
            Self::NoopLayer => {
                "a layer that does nothing: what axum itself asks for any layer, in a box of \
                 its own"
            }
            Self::Spillgate => "as it comes, with all of its headers",
            Self::SpillgateXHeaders => {
                "with the X-RateLimit headers alone, those that tower_governor has too"
            }
            Self::SpillgateNoHeaders => "without headers",
            Self::SpillgateMetrics => "as it comes, and counted for Prometheus",
            Self::TowerGovernor => "with `use_headers()`",
            Self::TowerGovernorNoHeaders => "as it comes, which is without headers",
        }
    }

    pub fn is_limiter(self) -> bool {
        !matches!(self, Self::Plain | Self::NoopLayer)
    }

    /// The other limiter's server that a server of Spillgate is compared with: the one
    /// that tells its callers as much, or else less.
    pub fn rival(self) -> Option<Self> {
        match self {
            Self::Spillgate | Self::SpillgateXHeaders | Self::SpillgateMetrics => {
                Some(Self::TowerGovernor)
            }
            Self::SpillgateNoHeaders => Some(Self::TowerGovernorNoHeaders),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
