//! What keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use spillgate_policy::parse_duration;

use super::pane::Pane;
use super::rows::{bans, callers};
use super::state::State;
use super::view::{Change, Dialog, View};

/// What is to be done that is not only a matter of what is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Quit,
    /// To the background, as a shell's job.
    Suspend,
    /// All of the screen is to be drawn anew.
    Redraw,
    /// Asks the server now.
    Refresh,
    Change(Change),
}

/// How long a ban is proposed to last.
const BAN_FOR: &str = "1h";

const NEEDS_TOKEN: &str = "this needs the server's token: set SPILLGATE_TOKEN";
const NEEDS_NAMES: &str = "names are masked: press r to reveal them first";

impl View {
    pub(super) fn press(&mut self, key: KeyEvent, state: &State) -> Option<Effect> {
        self.message = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Effect::Quit),
                KeyCode::Char('z') => Some(Effect::Suspend),
                KeyCode::Char('l') => Some(Effect::Redraw),
                _ => None,
            };
        }
        match self.dialog.take() {
            None => self.browse(key.code, state),
            Some(Dialog::Help | Dialog::Details) => None,
            Some(Dialog::Filter(before)) => {
                self.write_filter(key.code, before);
                None
            }
            Some(Dialog::BanFor { caller, mut duration }) => {
                match key.code {
                    KeyCode::Enter => match check_duration(&duration) {
                        Ok(()) => {
                            self.dialog = Some(Dialog::Confirm(Change::Ban { caller, duration }));
                        }
                        Err(why) => {
                            self.warn(why);
                            self.dialog = Some(Dialog::BanFor { caller, duration });
                        }
                    },
                    KeyCode::Esc => {}
                    code => {
                        write(&mut duration, code);
                        self.dialog = Some(Dialog::BanFor { caller, duration });
                    }
                }
                None
            }
            Some(Dialog::Confirm(change)) => match key.code {
                KeyCode::Char('y' | 'Y') => Some(Effect::Change(change)),
                KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                    self.say("nothing was changed");
                    None
                }
                _ => {
                    self.dialog = Some(Dialog::Confirm(change));
                    None
                }
            },
        }
    }

    fn browse(&mut self, code: KeyCode, state: &State) -> Option<Effect> {
        match code {
            KeyCode::Char('q') => return Some(Effect::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.select(1, state),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1, state),
            KeyCode::PageDown => self.select(10, state),
            KeyCode::PageUp => self.select(-10, state),
            KeyCode::Home | KeyCode::Char('g') => self.select(isize::MIN, state),
            KeyCode::End | KeyCode::Char('G') => self.select(isize::MAX, state),
            KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => self.switch(1, state),
            KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => self.switch(-1, state),
            KeyCode::Char('s') => self.next_order(),
            KeyCode::Char('/') => self.dialog = Some(Dialog::Filter(self.filter.clone())),
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('?') | KeyCode::F(1) => self.dialog = Some(Dialog::Help),
            KeyCode::Enter => {
                self.hold(state);
                self.dialog = self.selected(self.focus, state).map(|_| Dialog::Details);
            }
            KeyCode::Char('r') => return self.toggle_reveal(),
            KeyCode::Char('b') => self.start_ban(state),
            KeyCode::Char('x') => self.start_undo(state),
            _ => {}
        }
        None
    }

    fn toggle_reveal(&mut self) -> Option<Effect> {
        if !self.has_token {
            self.warn(NEEDS_TOKEN);
            return None;
        }
        self.reveal = !self.reveal;
        Some(Effect::Refresh)
    }

    fn write_filter(&mut self, code: KeyCode, before: String) {
        match code {
            KeyCode::Enter => {}
            KeyCode::Esc => self.filter = before,
            code => {
                write(&mut self.filter, code);
                self.dialog = Some(Dialog::Filter(before));
            }
        }
    }

    /// Whether what is needed to change something is there; says what is missing.
    fn can_change(&mut self, state: &State) -> bool {
        match (self.has_token, self.reveal, state.is_revealed) {
            (false, ..) => self.warn(NEEDS_TOKEN),
            (_, false, _) => self.warn(NEEDS_NAMES),
            (.., false) => self.warn("the server has not revealed names yet"),
            _ => return true,
        }
        false
    }

    fn start_ban(&mut self, state: &State) {
        if self.focus != Pane::Callers {
            return self.warn("select a caller first: tab leads to them");
        }
        if !self.can_change(state) {
            return;
        }
        self.hold(state);
        let callers = callers(state, self);
        let selected = self.selected(self.focus, state).and_then(|index| callers.get(index));
        match selected.map(|(caller, _)| caller.ban.clone()) {
            None => self.warn("there is no caller to ban"),
            Some(None) => self.warn("this is no caller that can be banned, such as an address"),
            Some(Some(caller)) => {
                self.dialog = Some(Dialog::BanFor { caller, duration: BAN_FOR.to_owned() });
            }
        }
    }

    /// Of a caller, what it has spent; of a ban, the ban.
    fn start_undo(&mut self, state: &State) {
        if !matches!(self.focus, Pane::Callers | Pane::Bans) {
            return self.warn("select a caller or a ban first: tab leads to them");
        }
        if !self.can_change(state) {
            return;
        }
        self.hold(state);
        let Some(index) = self.selected(self.focus, state) else {
            return self.warn("there is nothing to reset");
        };
        let change = if self.focus == Pane::Bans {
            bans(state, self).get(index).map(|ban| Change::Lift { caller: ban.caller.clone() })
        } else {
            callers(state, self).get(index).and_then(|(caller, _)| {
                let values = caller.values.clone()?;
                Some(Change::Reset { limit: caller.limit.clone(), values })
            })
        };
        match change {
            Some(change) => self.dialog = Some(Dialog::Confirm(change)),
            None => self.warn("the key of this caller cannot be written as text"),
        }
    }
}

/// Changes a text that is being written.
fn write(text: &mut String, code: KeyCode) {
    match code {
        KeyCode::Char(it) if !it.is_control() && text.chars().count() < 64 => text.push(it),
        KeyCode::Backspace => {
            text.pop();
        }
        _ => {}
    }
}

fn check_duration(text: &str) -> Result<(), String> {
    parse_duration(text)
        .map(|_| ())
        .map_err(|_| format!("invalid duration {text:?}; write 90s, 10m, 1h or 1d"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{busy, status, watched};
    use super::*;

    fn press(view: &mut View, state: &State, keys: &str) -> Option<Effect> {
        let mut effect = None;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                other => KeyCode::Char(other),
            };
            effect = view.press(KeyEvent::from(code), state);
        }
        effect
    }

    fn revealed() -> View {
        let mut view = View::new("127.0.0.1:8390");
        (view.has_token, view.reveal) = (true, true);
        view
    }

    #[test]
    fn a_ban_is_of_the_selected_caller_and_is_confirmed() {
        let (state, mut view) = (watched(), revealed());
        assert_eq!(press(&mut view, &state, "\tjb\n"), None);
        let change = Change::Ban { caller: "198.51.100.23".into(), duration: "1h".to_owned() };
        assert_eq!(view.dialog, Some(Dialog::Confirm(change.clone())));
        assert_eq!(press(&mut view.clone(), &state, "y"), Some(Effect::Change(change)));
        for keys in ["n", "\u{1b}", "q"] {
            let mut view = view.clone();
            assert_eq!(press(&mut view, &state, keys), None, "{keys:?}");
            assert_eq!(view.dialog, None);
        }
        assert_eq!(press(&mut view, &state, "\nab "), None, "other keys confirm nothing");
        assert!(matches!(view.dialog, Some(Dialog::Confirm(_))));
    }

    #[test]
    fn a_duration_is_checked_before_it_is_confirmed() {
        let (state, mut view) = (watched(), revealed());
        press(&mut view, &state, "\tb\u{8}\u{8}soon\n");
        assert!(view.message.as_ref().unwrap().text.contains("\"soon\""), "{view:?}");
        press(&mut view, &state, "\u{8}\u{8}\u{8}\u{8}10m\n");
        let change = Change::Ban { caller: "203.0.113.7".into(), duration: "10m".to_owned() };
        assert_eq!(press(&mut view, &state, "y"), Some(Effect::Change(change)));
    }

    #[test]
    fn a_selected_caller_stays_selected_while_rows_move() {
        let (mut state, mut view) = (watched(), revealed());
        press(&mut view, &state, "\tj");
        let mut json = busy(90);
        json["top"]["callers"][1]["denied"] = 1_000_000.into();
        state.apply(status(&json));
        assert_eq!(view.selected(Pane::Callers, &state), Some(0));
        press(&mut view, &state, "x");
        let reset = Change::Reset { limit: "api".into(), values: vec!["198.51.100.23".into()] };
        assert_eq!(view.dialog, Some(Dialog::Confirm(reset)));
        // It is gone: the row in its place is selected, and the question is about who it was.
        json["top"]["callers"] = serde_json::json!([]);
        state.apply(status(&json));
        assert_eq!(view.selected(Pane::Callers, &state), None);
        assert!(matches!(press(&mut view, &state, "y"), Some(Effect::Change(_))));
    }

    #[test]
    fn nothing_is_changed_without_token_names_or_row() {
        let state = watched();
        for (has_token, reveal, keys, hint) in [
            (false, false, "\tb", "SPILLGATE_TOKEN"),
            (false, false, "r", "SPILLGATE_TOKEN"),
            (true, false, "\tb", "press r"),
            (true, false, "\tx", "press r"),
            (true, true, "b", "select a caller"),
            (true, true, "x", "select a caller"),
        ] {
            let mut view = View::new("");
            (view.has_token, view.reveal) = (has_token, reveal);
            assert_eq!(press(&mut view, &state, keys), None, "{keys:?}");
            assert_eq!(view.dialog, None, "{keys:?}");
            assert!(view.message.unwrap().text.contains(hint), "{keys:?}");
        }
        let mut view = revealed();
        press(&mut view, &State::default(), "\tb");
        assert_eq!(view.dialog, None);
        press(&mut view, &State::default(), "jkGg\tx\n");
        assert_eq!(view.dialog, None);
    }

    #[test]
    fn a_ban_is_lifted_where_bans_are_listed() {
        let (state, mut view) = (watched(), revealed());
        press(&mut view, &state, "\t\tx");
        let change = Change::Lift { caller: "203.0.113.99".into() };
        assert_eq!(press(&mut view, &state, "y"), Some(Effect::Change(change)));
    }

    #[test]
    fn a_filter_is_written_cleared_and_taken_back() {
        let (state, mut view) = (watched(), View::new(""));
        press(&mut view, &state, "/ser\n");
        assert_eq!((view.filter.as_str(), rows_of(&state, &view)), ("ser", 1));
        press(&mut view, &state, "/x\u{1b}");
        assert_eq!(view.filter, "ser");
        press(&mut view, &state, "\u{1b}");
        assert_eq!((view.filter.as_str(), rows_of(&state, &view)), ("", 3));
    }

    fn rows_of(state: &State, view: &View) -> usize {
        super::super::rows::limits(state, view).len()
    }

    #[test]
    fn orders_and_panes_go_round() {
        let (state, mut view) = (watched(), View::new(""));
        let first = view.order(Pane::Limits);
        press(&mut view, &state, "s");
        assert_ne!(view.order(Pane::Limits), first);
        let orders = Pane::Limits.orders().len();
        press(&mut view, &state, &"s".repeat(orders - 1));
        assert_eq!(view.order(Pane::Limits), first);
        let panes = Pane::all(&state).len();
        assert_eq!(panes, Pane::COUNT);
        press(&mut view, &state, &"\t".repeat(panes));
        assert_eq!(view.focus, Pane::Limits);
        press(&mut view, &state, "h");
        assert_eq!(view.focus, Pane::Upstreams);
    }
}
