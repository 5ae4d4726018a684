//! Frames as they should look. `SPILLGATE_UPDATE=1 cargo test -p spillgate-server --lib top::ui`
//! writes them anew.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use serde_json::json;

use super::*;
use crate::commands::top::testing::{busy, status, watched};
use crate::commands::top::view::{Change, Dialog};

const ABLE: Abilities = Abilities { colours: true, unicode: true };

fn view() -> View {
    View::new("127.0.0.1:8390")
}

/// After a minute and a half, with names masked.
fn masked() -> State {
    State { is_revealed: false, ..watched() }
}

fn drawn(state: &State, view: &View, (width, height): (u16, u16), abilities: Abilities) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| render(frame, state, view, abilities)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width).max(1));
    let row = |cells: &[ratatui::buffer::Cell]| {
        // What is behind a wide character is a cell without a place of its own.
        let mut line = String::new();
        let mut skipped = 0;
        for cell in cells {
            if skipped == 0 {
                line.push_str(cell.symbol());
                skipped = Span::raw(cell.symbol()).width().saturating_sub(1);
            } else {
                skipped -= 1;
            }
        }
        format!("{}\n", line.trim_end())
    };
    rows.map(row).collect()
}

/// Compares with what was approved.
fn golden(name: &str, state: &State, view: &View, size: (u16, u16), abilities: Abilities) {
    let shown = text(&drawn(state, view, size, abilities));
    let path = format!("{}/src/commands/top/ui/frames/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("SPILLGATE_UPDATE").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let approved = std::fs::read_to_string(&path).unwrap();
    assert_eq!(shown, approved, "{name}:\n{shown}");
}

#[test]
fn a_terminal_of_80_columns_shows_limits_and_callers() {
    golden("narrow", &masked(), &view(), (80, 24), ABLE);
}

#[test]
fn the_page_shows_the_approved_frame() {
    let page = include_str!("../../../../../../docs/top.md");
    let frame = include_str!("frames/narrow.txt");
    let (rows, _) = frame.split_once("\n\n").unwrap();
    rows.lines().for_each(|row| assert!(page.contains(row), "{row}"));
}

#[test]
fn a_large_terminal_shows_everything() {
    let mut view = view();
    (view.focus, view.has_token, view.reveal) = (Pane::Callers, true, true);
    golden("wide", &watched(), &view, (160, 48), ABLE);
}

#[test]
fn a_small_terminal_shows_what_is_in_use() {
    let mut view = view();
    view.focus = Pane::Callers;
    golden("small", &masked(), &view, (40, 12), ABLE);
}

#[test]
fn a_server_that_does_nothing_and_one_that_does_not_answer() {
    let mut state = State::default();
    golden("waiting", &state, &view(), (80, 24), ABLE);
    state.fail("cannot reach 127.0.0.1:8390: Connection refused (os error 111)".to_owned());
    golden("unreachable", &state, &view(), (80, 24), ABLE);
    state.apply(status(&json!({ "phase": "starting", "limits": [] })));
    golden("empty", &state, &view(), (80, 24), ABLE);
}

#[test]
fn without_unicode_every_character_is_ascii() {
    let abilities = Abilities { unicode: false, ..ABLE };
    golden("ascii", &masked(), &view(), (80, 24), abilities);
    assert!(text(&drawn(&hostile(), &view(), (160, 48), abilities)).is_ascii());
}

#[test]
fn without_colours_there_is_none_and_the_selection_is_seen() {
    let plain = drawn(&watched(), &view(), (80, 24), Abilities { colours: false, ..ABLE });
    assert!(plain.content.iter().all(|it| it.fg == Color::Reset && it.bg == Color::Reset));
    assert!(plain.content.iter().any(|it| it.modifier.contains(Modifier::REVERSED)));
    assert_eq!(text(&plain), text(&drawn(&watched(), &view(), (80, 24), ABLE)));
}

/// A server whose callers and operators have chosen the worst of names.
fn hostile() -> State {
    let worst = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\n\u{202e}漢字\u{200b}é\u{9b}31m👩‍👩‍👧".to_owned();
    let long = worst.repeat(20);
    let mut state = State::default();
    let mut json = busy(0);
    json["top"]["callers"][0]["caller"] = json!(long);
    json["top"]["callers"][0]["values"] = json!([long, worst]);
    json["top"]["callers"][1] = json!({ "limit": "api", "caller": worst, "denied": u64::MAX / 4 });
    json["limits"][0]["name"] = json!(worst);
    json["limits"][1]["quota"] = json!(long);
    json["limits"][1]["used"] = json!([1, u64::MAX]);
    json["limits"][2]["adaptive"]["reason"] = json!(long);
    json["limits"][2]["adaptive"]["max"] = json!(10.0);
    json["upstreams"][0]["url"] = json!(worst);
    json["version"] = json!(worst);
    json["phase"] = json!(worst);
    json["store"] = json!({ "kind": "redis", "state": "down", "outage": long });
    json["uptime"] = json!(-1e300);
    json["time"] = json!(1e300);
    state.apply(status(&json));
    state.apply(status(&busy(1)));
    state.apply(status(&json));
    let ban = json!([{ "caller": long, "reason": worst, "expires": worst, "expires_in": 1e300 }]);
    (state.bans, state.is_revealed) = (Some(serde_json::from_value(ban).unwrap()), true);
    state
}

#[test]
fn what_callers_chose_is_escaped_everywhere() {
    let mut view = view();
    (view.has_token, view.reveal) = (true, true);
    let state = hostile();
    golden("hostile", &state, &view, (100, 40), ABLE);
    for focus in Pane::all(&state) {
        view.focus = focus;
        for dialog in dialogs(&state, &view) {
            view.dialog = dialog;
            let shown = drawn(&state, &view, (100, 40), ABLE);
            let is_obeyed = |it: char| it.is_control() || ['\u{200b}', '\u{202e}'].contains(&it);
            let obeyed = shown.content.iter().find(|cell| cell.symbol().contains(is_obeyed));
            assert_eq!(obeyed, None, "{focus:?} {:?}", view.dialog);
        }
    }
}

/// Everything that may cover the panes.
fn dialogs(state: &State, view: &View) -> Vec<Option<Dialog>> {
    let caller = state.bans.as_ref().unwrap()[0].caller.clone();
    let limit = rows::limits(state, view)[0].name.clone();
    let ban = Change::Ban { caller: caller.clone(), duration: "1h".to_owned() };
    let reset = Change::Reset { limit, values: vec![caller.clone(), caller.clone()] };
    vec![
        None,
        Some(Dialog::Help),
        Some(Dialog::Details),
        Some(Dialog::Filter(String::new())),
        Some(Dialog::BanFor { caller: caller.clone(), duration: "1h".to_owned() }),
        Some(Dialog::Confirm(ban)),
        Some(Dialog::Confirm(Change::Lift { caller })),
        Some(Dialog::Confirm(reset)),
    ]
}

#[test]
fn no_size_is_too_small() {
    let mut view = view();
    for state in [State::default(), watched(), hostile()] {
        for focus in Pane::all(&state) {
            view.focus = focus;
            let dialogs = if state.bans.is_some() { dialogs(&state, &view) } else { vec![None] };
            for dialog in dialogs {
                view.dialog = dialog;
                for size in [(0, 0), (1, 1), (2, 40), (200, 1), (3, 3), (20, 5), (7, 9), (33, 17)] {
                    drawn(&state, &view, size, ABLE);
                }
            }
        }
    }
}

#[test]
fn a_question_names_what_it_is_about() {
    let (state, mut view) = (masked(), view());
    let caller = state.bans.as_ref().unwrap()[0].caller.clone();
    let change = Change::Ban { caller, duration: "90s".to_owned() };
    view.dialog = Some(Dialog::Confirm(change));
    golden("question", &state, &view, (60, 16), ABLE);
    view.dialog = Some(Dialog::Details);
    golden("details", &state, &view, (80, 24), ABLE);
    view.dialog = Some(Dialog::Help);
    golden("help", &state, &view, (80, 24), ABLE);
}
