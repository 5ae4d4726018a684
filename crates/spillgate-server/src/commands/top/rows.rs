//! The rows of each pane, filtered and sorted.

use std::cmp::Reverse;

use super::pane::{Order, Pane};
use super::state::State;
use super::status::{Adaptive, Ban, Caller, Limit, Status, Upstream};
use super::view::View;

/// A caller, and how often it is denied per second, if that is known yet.
pub(super) type RatedCaller<'a> = (&'a Caller, Option<f64>);

pub(super) fn limits<'a>(state: &'a State, view: &View) -> Vec<&'a Limit> {
    let all = state.status.iter().flat_map(|status: &Status| &status.limits);
    let mut rows: Vec<_> = all.filter(|limit| view.matches(&limit.name)).collect();
    match view.order(Pane::Limits) {
        Order::DeniedPerSecond => rows
            .sort_by_key(|it| Reverse(it.second.denied + it.second.shadow_denied + it.second.shed)),
        Order::AllowedPerSecond => rows.sort_by_key(|it| Reverse(it.second.allowed)),
        Order::Denied => rows.sort_by_key(|it| Reverse(it.denied + it.shadow_denied + it.shed)),
        Order::Callers => rows.sort_by_key(|it| Reverse(it.callers)),
        Order::Name => rows.sort_by_key(|it| &it.name),
        _ => {}
    }
    rows
}

pub(super) fn callers<'a>(state: &'a State, view: &View) -> Vec<RatedCaller<'a>> {
    let all = state.status.iter().flat_map(|status| &status.top.callers);
    let rated = |caller: &'a Caller| {
        (caller, state.rates.per_second(caller.limit.raw(), caller.caller.raw()))
    };
    let mut rows: Vec<_> = all.filter(|caller| view.matches(&caller.limit)).map(rated).collect();
    match view.order(Pane::Callers) {
        Order::DeniedPerSecond => {
            rows.sort_by(|(_, one), (_, other)| {
                other.unwrap_or(-1.0).total_cmp(&one.unwrap_or(-1.0))
            });
        }
        Order::Allowed => rows.sort_by_key(|(it, _)| Reverse(it.allowed)),
        Order::Limit => rows.sort_by_key(|(it, _)| &it.limit),
        Order::Name => rows.sort_by_key(|(it, _)| &it.caller),
        _ => rows.sort_by_key(|(it, _)| Reverse(it.denied + it.shadow_denied)),
    }
    rows
}

pub(super) fn bans<'a>(state: &'a State, view: &View) -> Vec<&'a Ban> {
    let mut rows: Vec<_> = state.bans.iter().flatten().collect();
    if view.order(Pane::Bans) == Order::Name {
        rows.sort_by_key(|ban| &ban.caller);
    }
    rows
}

pub(super) fn adaptive<'a>(state: &'a State, view: &View) -> Vec<(&'a Limit, &'a Adaptive)> {
    let all = state.status.iter().flat_map(|status| &status.limits);
    let all = all.filter(|limit| view.matches(&limit.name));
    let mut rows: Vec<_> =
        all.filter_map(|limit| Some((limit, limit.adaptive.as_ref()?))).collect();
    if view.order(Pane::Adaptive) == Order::Name {
        rows.sort_by_key(|(limit, _)| &limit.name);
    }
    rows
}

pub(super) fn upstreams<'a>(state: &'a State, view: &View) -> Vec<&'a Upstream> {
    let mut rows: Vec<_> = state.status.iter().flat_map(|status| &status.upstreams).collect();
    if view.order(Pane::Upstreams) == Order::Name {
        rows.sort_by_key(|upstream| &upstream.url);
    }
    rows
}

/// What tells the rows of a pane apart, in the order in which they are shown.
pub(super) fn ids(pane: Pane, state: &State, view: &View) -> Vec<String> {
    let text = |text: &str| text.to_owned();
    match pane {
        Pane::Limits => limits(state, view).iter().map(|it| text(it.name.raw())).collect(),
        Pane::Callers => {
            let id = |(it, _): &RatedCaller<'_>| format!("{}\0{}", it.limit.raw(), it.caller.raw());
            callers(state, view).iter().map(id).collect()
        }
        Pane::Bans => bans(state, view).iter().map(|it| text(it.caller.raw())).collect(),
        Pane::Adaptive => adaptive(state, view).iter().map(|(it, _)| text(it.name.raw())).collect(),
        Pane::Upstreams => upstreams(state, view).iter().map(|it| text(it.url.raw())).collect(),
    }
}
