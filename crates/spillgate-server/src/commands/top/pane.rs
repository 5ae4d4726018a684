//! The parts of the screen, and the orders of their rows.

use super::state::State;

/// What can be scrolled and selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pane {
    Limits,
    Callers,
    Bans,
    Adaptive,
    Upstreams,
}

impl Pane {
    /// How many there are at most.
    pub(super) const COUNT: usize = 5;

    /// Those that have something to show. The first three are always there.
    pub(super) fn all(state: &State) -> Vec<Self> {
        let mut panes = vec![Self::Limits, Self::Callers, Self::Bans];
        if let Some(status) = &state.status {
            if status.limits.iter().any(|limit| limit.adaptive.is_some()) {
                panes.push(Self::Adaptive);
            }
            if !status.upstreams.is_empty() {
                panes.push(Self::Upstreams);
            }
        }
        panes
    }

    /// The orders that its rows can have, the first at the beginning.
    pub(super) fn orders(self) -> &'static [Order] {
        match self {
            Self::Limits => &[
                Order::AsListed("policy"),
                Order::DeniedPerSecond,
                Order::AllowedPerSecond,
                Order::Denied,
                Order::Callers,
                Order::Name,
            ],
            Self::Callers => {
                &[Order::Denied, Order::DeniedPerSecond, Order::Allowed, Order::Limit, Order::Name]
            }
            Self::Bans => &[Order::AsListed("end"), Order::Name],
            Self::Adaptive | Self::Upstreams => &[Order::AsListed("policy"), Order::Name],
        }
    }
}

/// What rows are sorted by; numbers with the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As the server lists them: by what is said.
    AsListed(&'static str),
    DeniedPerSecond,
    AllowedPerSecond,
    Denied,
    Allowed,
    Callers,
    Limit,
    Name,
}

impl Order {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AsListed(name) => name,
            Self::DeniedPerSecond => "denied/s",
            Self::AllowedPerSecond => "allowed/s",
            Self::Denied => "denied",
            Self::Allowed => "allowed",
            Self::Callers => "callers",
            Self::Limit => "limit",
            Self::Name => "name",
        }
    }
}
