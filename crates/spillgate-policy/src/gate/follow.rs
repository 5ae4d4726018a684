//! Keeping up with the other nodes of a shared store.

use super::Gate;
use crate::Error;
use crate::store::{EditLog, Store};

impl<S: Store> Gate<S> {
    /// Exchanges with a shared store what happened since the last time: applies the edits of all
    /// nodes since `version`, which moves on, sends offences and bans of this node, and ends
    /// overrides whose time has come. Begin with version 0. If the store is in process, only the
    /// last is left to do.
    ///
    /// Call it again after 0.4 seconds, or after a second if the gate was not asked meanwhile: that is
    /// how long a ban or a list entry takes to reach this node.
    ///
    /// # Errors
    ///
    /// If the store could not answer, or an edit of another node could not be understood: all
    /// others are applied nevertheless.
    pub async fn follow(&self, version: &mut u64) -> Result<(), Error> {
        if self.store.is_in_process() {
            return self.expire_overrides().await;
        }
        let mut done = Ok(());
        loop {
            let EditLog { version: latest, edits } = self.store.edits_since(*version).await?;
            *version = latest;
            if edits.is_empty() {
                break;
            }
            done = done.and(self.apply_all(&edits));
        }
        self.flush_offences().await?;
        self.expire_overrides().await?;
        done
    }
}
