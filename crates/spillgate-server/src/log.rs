//! The log: lines on standard error.

use std::io;

use crate::settings::{LogFormat, Settings};

/// Begins to log. A program does so once; what comes later has no effect.
pub(crate) fn begin(settings: &Settings) {
    let builder = tracing_subscriber::fmt()
        .with_max_level(settings.log_level)
        .with_writer(io::stderr)
        // Otherwise a failed write panics.
        .log_internal_errors(false)
        .with_target(false);
    let is_for_people = io::IsTerminal::is_terminal(&io::stderr());
    // It is only refused if somebody logs already.
    let _ = match settings.log_format {
        LogFormat::Text => builder.with_ansi(is_for_people).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
