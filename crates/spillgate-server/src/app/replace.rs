//! Replacing the policy while requests are decided.

use std::sync::{Arc, MutexGuard, PoisonError};

use spillgate_policy::{Changes, Error, Policy, PolicyBuilder};

use super::App;
use crate::settings::Additions;

#[derive(Debug)]
pub(super) struct Source {
    pub(super) text: Arc<str>,
    pub(super) additions: Additions,
}

impl App {
    /// Replaces the policy by that of a text. If it is invalid, the one in force stays. Relative paths in it refer to the [folder](Self::with_folder) of the configuration
    /// file. Its `[server]`, `[store]` and `[proxy]` have no effect; limits of envoyproxy/ratelimit
    /// files stay. The error lists all problems of the text, or says that the store cannot keep
    /// its limits.
    pub fn replace(&self, text: &str) -> Result<Changes, Error> {
        let mut current = self.lock();
        let builder = PolicyBuilder::from_toml_in(text, &self.folder)?;
        let policy = current.additions.added_to(builder)?;
        let changes = self.gate().replace(policy)?;
        current.text = text.into();
        Ok(changes)
    }

    /// Replaces the policy by one that was read from this text, and has these additions. If the
    /// store cannot keep its limits, the one in force stays.
    pub(crate) fn adopt(
        &self,
        policy: Policy,
        text: impl Into<Arc<str>>,
        additions: Additions,
    ) -> Result<Changes, Error> {
        let mut current = self.lock();
        let changes = self.gate().replace(policy)?;
        *current = Source { text: text.into(), additions };
        Ok(changes)
    }

    /// The text of the policy in force. It may hold secrets.
    pub fn policy(&self) -> Arc<str> {
        Arc::clone(&self.lock().text)
    }

    fn lock(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
