//! Replacing the policy while requests are decided.

use std::sync::{Arc, MutexGuard, PoisonError};

use spillgate_policy::{Changes, Error, Policy, PolicyBuilder};

use super::App;
use crate::settings::Additions;

/// What the policy in force was made from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) text: Arc<str>,
    pub(super) additions: Additions,
}

impl App {
    /// Replaces the policy by that of a text. If anything is wrong with it, the one in force
    /// stays. Relative paths in it refer to the [folder](Self::with_folder) of the configuration
    /// file. Its `[server]`, `[store]` and `[proxy]` have no effect; limits of envoyproxy/ratelimit
    /// files stay.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in the text; or that the store cannot keep its limits.
    pub fn replace(&self, text: &str) -> Result<Changes, Error> {
        let mut current = self.lock();
        let builder = PolicyBuilder::from_toml_in(text, &self.folder)?;
        let policy = current.additions.added_to(builder)?;
        let changes = self.gate().replace(policy)?;
        current.text = text.into();
        Ok(changes)
    }

    /// Replaces the policy by one that was read from this text: [loaded](Policy::load) from a
    /// file, for example.
    ///
    /// # Errors
    ///
    /// If the store cannot keep its limits. Then the one in force stays.
    pub fn adopt(&self, policy: Policy, text: impl Into<Arc<str>>) -> Result<Changes, Error> {
        self.adopt_with(policy, text, Additions::default())
    }

    /// [Adopts](Self::adopt) a policy that has more than its text says.
    pub(crate) fn adopt_with(
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
    #[must_use]
    pub fn policy(&self) -> Arc<str> {
        Arc::clone(&self.lock().text)
    }

    fn lock(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
