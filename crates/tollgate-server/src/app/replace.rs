//! Another policy, while requests are being decided.

use std::sync::{Arc, PoisonError};

use tollgate_policy::{Changes, Error, Policy};

use super::App;

impl App {
    /// Puts the policy of a text in force. If anything is wrong with it, the one in force
    /// stays. Files that it names are looked for in the [folder](Self::with_folder) of its
    /// own file. What it says in `[server]` is for that file, and does nothing here.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in the text; or that the store cannot keep its limits.
    pub fn replace(&self, text: &str) -> Result<Changes, Error> {
        self.adopt(Policy::from_toml_in(text, &self.folder)?, text)
    }

    /// Puts a policy in force that was read from this text: [loaded](Policy::load) from a
    /// file, for example.
    ///
    /// # Errors
    ///
    /// If the store cannot keep its limits. Then the one in force stays.
    pub fn adopt(&self, policy: Policy, text: impl Into<Arc<str>>) -> Result<Changes, Error> {
        let mut current = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.gate.replace(policy)?;
        *current = text.into();
        Ok(changes)
    }

    /// The text of the policy in force. It may hold secrets.
    #[must_use]
    pub fn policy(&self) -> Arc<str> {
        Arc::clone(&self.policy.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
