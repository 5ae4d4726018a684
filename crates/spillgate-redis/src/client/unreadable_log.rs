use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use crate::backend::BackendError;
use crate::script::Key;

/// Rate limit of the log line: a caller with an unreadable state may call often.
const INTERVAL: Duration = Duration::from_secs(60);

/// Logs unreadable states with their keys.
#[derive(Debug, Default)]
pub(super) struct UnreadableLog(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    logged: Option<Instant>,
    suppressed: u64,
}

impl UnreadableLog {
    /// Notes that a call on these keys found an unreadable value.
    pub(super) fn note(&self, keys: impl Iterator<Item = Key>, error: &BackendError) {
        let suppressed = {
            let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if noted.logged.is_some_and(|logged| logged.elapsed() < INTERVAL) {
                noted.suppressed += 1;
                return;
            }
            noted.logged = Some(Instant::now());
            std::mem::take(&mut noted.suppressed)
        };
        let keys: Vec<_> = keys.map(|key| String::from_utf8_lossy(&key).into_owned()).collect();
        let keys = keys.join(" ");
        warn!(keys, %error, suppressed, "unreadable state of a caller: \
               its limits apply their `outage` setting");
    }
}
