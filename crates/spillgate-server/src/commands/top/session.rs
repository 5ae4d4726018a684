//! The loop: asks once per second, obeys keys, draws.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyEventKind};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::super::escape::shown;
use super::super::remote::Remote;
use super::keys::Effect;
use super::question::{self, Answer, Failure};
use super::screen::{Screen, ended, events};
use super::state::State;
use super::ui::{self, Abilities};
use super::view::View;

/// What a task has found out.
enum Done {
    Asked(Result<Box<Answer>, Failure>),
    Changed(Result<String, String>),
}

struct Session {
    remote: Arc<Remote>,
    view: View,
    live: State,
    /// What is shown while paused.
    frozen: Option<State>,
    tasks: JoinSet<Done>,
    is_asking: bool,
}

pub(super) async fn run(
    remote: Remote,
    view: View,
    abilities: Abilities,
) -> Result<(), Box<dyn Error>> {
    let mut session = Session {
        remote: Arc::new(remote),
        view,
        live: State::default(),
        frozen: None,
        tasks: JoinSet::new(),
        is_asking: false,
    };
    let unusable =
        |error| format!("the terminal cannot be used: {error}; --once prints tables instead");
    let mut screen = Screen::enter().map_err(unusable)?;
    let mut events = events();
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = ended();
    tokio::pin!(ended);
    loop {
        let Session { view, live, frozen, .. } = &session;
        screen.draw(|frame| {
            ui::render(frame, frozen.as_ref().unwrap_or(live), view, abilities);
        })?;
        let effect = tokio::select! {
            _ = seconds.tick() => {
                session.live.tick();
                session.ask();
                None
            }
            Some(done) = session.tasks.join_next() => {
                session.done(done?);
                None
            }
            event = events.recv() => match event {
                Some(Event::Key(key)) if key.kind == KeyEventKind::Press => session.press(key),
                Some(_) => None,
                // The terminal is gone.
                None => Some(Effect::Quit),
            },
            signal = &mut ended => {
                signal?;
                Some(Effect::Quit)
            }
        };
        match effect {
            Some(Effect::Quit) => return Ok(()),
            Some(Effect::Suspend) => screen.suspend()?,
            Some(Effect::Redraw) => screen.clear()?,
            Some(Effect::Refresh) => session.ask(),
            Some(Effect::Change(change)) => {
                let remote = session.remote.clone();
                session.view.say("asking the server");
                session
                    .tasks
                    .spawn(async move { Done::Changed(question::change(&remote, &change).await) });
            }
            None => {}
        }
    }
}

impl Session {
    /// One question at a time: a slow server is not asked more.
    fn ask(&mut self) {
        if !self.is_asking {
            self.is_asking = true;
            let (remote, reveal) = (self.remote.clone(), self.view.reveal);
            let wants_past = self.live.misses_past();
            self.tasks.spawn(async move {
                Done::Asked(question::ask(&remote, reveal, wants_past).await.map(Box::new))
            });
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Asked(result) => {
                self.is_asking = false;
                match result {
                    Ok(answer) => {
                        let Answer { status, is_revealed, bans, past } = *answer;
                        (self.live.is_revealed, self.live.bans) = (is_revealed, bans);
                        if let Some(past) = past {
                            self.live.history.replace(&past);
                        }
                        self.live.apply(status);
                    }
                    Err(Failure::NotRevealed(why)) => {
                        self.view.reveal = false;
                        self.view.warn(shown(&why));
                    }
                    Err(Failure::Other(why)) => self.live.fail(shown(&why)),
                }
            }
            Done::Changed(Ok(what)) => {
                self.view.say(what);
                self.ask();
            }
            Done::Changed(Err(why)) => self.view.warn(shown(&why)),
        }
    }

    fn press(&mut self, key: ratatui::crossterm::event::KeyEvent) -> Option<Effect> {
        let state = self.frozen.as_ref().unwrap_or(&self.live);
        let effect = self.view.press(key, state);
        match (self.view.paused, &self.frozen) {
            (true, None) => self.frozen = Some(self.live.clone()),
            (false, Some(_)) => self.frozen = None,
            _ => {}
        }
        effect
    }
}
