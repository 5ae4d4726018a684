//! The terminal: taken over, and given back in whatever way the program ends.

use std::io;
use std::thread;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use ratatui::layout::{Position, Rect};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The terminal in raw mode, with another screen, until this is dropped. A panic gives it back,
/// too: [`ratatui::try_init`] sees to that.
pub(super) struct Screen(Option<DefaultTerminal>);

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        // Before anything fails: what was begun is undone.
        let mut screen = Self(None);
        screen.0 = Some(ratatui::try_init()?);
        Ok(screen)
    }

    pub(super) fn draw(&mut self, render: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), |terminal| terminal.draw(render).map(|_| ()))
    }

    /// Draws everything at the next time, also what has not changed.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        let Some(terminal) = &mut self.0 else { return Ok(()) };
        // Not `clear`: it asks the terminal where its cursor is, and `events` reads the answer.
        let size = terminal.size()?;
        terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Stops the program as a job of the shell; returns when it is continued.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.leave()?;
        kill_process(getpid(), Signal::TSTP)?;
        self.0 = Some(ratatui::try_init()?);
        self.clear()
    }

    /// Gives the terminal back.
    fn leave(&mut self) -> io::Result<()> {
        if let Some(mut terminal) = self.0.take() {
            let shown = terminal.show_cursor();
            if shown.is_err() {
                // It would try again, and print that it cannot, to a terminal that is gone.
                std::mem::forget(terminal);
            }
        }
        if thread::panicking() {
            // Was done before the message: once more, and the prompt would be written over it.
            return Ok(());
        }
        ratatui::try_restore()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Whoever hangs up has no terminal left.
        let _ = self.leave();
    }
}

/// What happens at the terminal. Ends with it.
pub(super) fn events() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(64);
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Waits for a signal that ends programs.
pub(super) async fn ended() -> io::Result<()> {
    let (mut interrupt, mut terminate, mut hangup) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    );
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}
