//! What the user looks at.

use super::super::escape::Untrusted;
use super::pane::{Order, Pane};
use super::rows::ids;
use super::state::State;

/// What the user has chosen to see.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// The server, as its URL names it.
    pub(super) server: String,
    pub(super) has_token: bool,
    /// Whether names are shown in full.
    pub(super) reveal: bool,
    pub(super) paused: bool,
    /// The pane that keys are for.
    pub(super) focus: Pane,
    /// Part of the names of limits.
    pub(super) filter: String,
    pub(super) dialog: Option<Dialog>,
    /// What the last action has led to.
    pub(super) message: Option<Message>,
    sorted: [usize; Pane::COUNT],
    selected: [Selection; Pane::COUNT],
}

/// What keys are for instead of for a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dialog {
    Help,
    /// All about the selected row.
    Details,
    /// The filter is being written. It had this value before.
    Filter(String),
    /// The duration of a ban is being written.
    BanFor {
        caller: Untrusted,
        duration: String,
    },
    Confirm(Change),
}

/// What can be done to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Ban {
        caller: Untrusted,
        duration: String,
    },
    Lift {
        caller: Untrusted,
    },
    /// Without values, of a limit for all callers together.
    Reset {
        limit: Untrusted,
        values: Vec<Untrusted>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) is_failure: bool,
}

/// A row, by what it shows and not by its place: rows move while somebody decides.
#[derive(Clone, Debug, Default)]
struct Selection {
    /// None until somebody moves: then it is the first one, whichever that is.
    id: Option<String>,
    /// Where it was last, for when it is gone.
    index: usize,
}

impl View {
    pub(super) fn new(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            has_token: false,
            reveal: false,
            paused: false,
            focus: Pane::Limits,
            filter: String::new(),
            dialog: None,
            message: None,
            sorted: [0; Pane::COUNT],
            selected: Default::default(),
        }
    }

    pub(super) fn order(&self, pane: Pane) -> Order {
        let orders = pane.orders();
        orders[self.sorted[pane as usize] % orders.len()]
    }

    pub(super) fn next_order(&mut self) {
        self.sorted[self.focus as usize] += 1;
    }

    /// Whether rows of a limit are shown.
    pub(super) fn matches(&self, limit: &Untrusted) -> bool {
        limit.raw().to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// The selected row of a pane; none if it is empty.
    pub(super) fn selected(&self, pane: Pane, state: &State) -> Option<usize> {
        let (ids, Selection { id, index }) =
            (ids(pane, state, self), &self.selected[pane as usize]);
        let found = id.as_ref().and_then(|id| ids.iter().position(|row| row == id));
        Some(found.unwrap_or(*index).min(ids.len().checked_sub(1)?))
    }

    /// Selects the row that is so many rows further down.
    pub(super) fn select(&mut self, by: isize, state: &State) {
        if let Some(index) = self.selected(self.focus, state) {
            let ids = ids(self.focus, state, self);
            let index = index.saturating_add_signed(by).min(ids.len() - 1);
            self.selected[self.focus as usize] =
                Selection { id: ids.into_iter().nth(index), index };
        }
    }

    /// Keeps what is selected on its row, from now on.
    pub(super) fn hold(&mut self, state: &State) {
        self.select(0, state);
    }

    /// Goes to another pane; `by` is 1 or -1.
    pub(super) fn switch(&mut self, by: isize, state: &State) {
        let panes = Pane::all(state);
        let at = panes.iter().position(|pane| *pane == self.focus).unwrap_or(0);
        let next = (at as isize + by).rem_euclid(panes.len() as isize);
        self.focus = panes[next as usize];
    }

    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), is_failure: false });
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), is_failure: true });
    }
}
