//! Edits made at run time, which all nodes share: list entries, overrides and bans.

use std::sync::atomic::Ordering;

use spillgate_policy::Error;
use spillgate_policy::store::{Edit, EditLog};

use super::RedisStore;
use super::limits::store_error;
use crate::backend::{Backend, BackendError, EditPage, MOST_EDITS, PAGE_OF_EDITS};

/// How many pages are fetched per call: enough for a change of many entries.
const PAGES: usize = 16;

impl<B: Backend> RedisStore<B> {
    /// Stores edits. Up to a thousand are stored together, all or none.
    pub(super) async fn publish_edits(&self, edits: &[Edit]) -> Result<(), Error> {
        for edits in edits.chunks(PAGE_OF_EDITS) {
            let local = self.core.local();
            let sealed: Result<Vec<_>, _> =
                edits.iter().map(|edit| self.seal.seal(edit, local)).collect();
            if !self.core.backend.publish(&sealed?).await.map_err(store_error)? {
                return Err(Error::store(format!(
                    "more than {MOST_EDITS} list entries, overrides and bans in Redis; write them \
                     into the policy, or remove some: removed ones count for a day"
                )));
            }
        }
        Ok(())
    }

    /// Some edits since a version. This node is announced with the same call, if it is time.
    async fn page_of_edits(&self, version: u64) -> Result<EditPage, BackendError> {
        let (nodes, backend) = (&self.core.nodes, &self.core.backend);
        let Some(begun) = nodes.begin_if_due() else { return backend.edits_since(version).await };
        let (alive, page) = backend.pulse(begun.announcement(), version).await;
        nodes.end(&begun, alive);
        page
    }

    /// The edits since a version. There may be more: ask again while there are any.
    pub(super) async fn fetch_edits(&self, since: u64) -> Result<EditLog, Error> {
        let mut log = EditLog::new(since, Vec::new());
        // Relaxed: calls of one node are made one after the other.
        let mut history = self.edit_history.load(Ordering::Relaxed);
        for _ in 0..PAGES {
            let page = self.page_of_edits(log.version).await.map_err(store_error)?;
            if page.history != history {
                history = page.history;
                if log.version > 0 {
                    // After a failover other edits may have the versions that are known here.
                    log = EditLog::new(0, Vec::new());
                    continue;
                }
            }
            if page.version < log.version {
                // Redis has lost its state: what was fetched before does not count.
                log.edits.clear();
            }
            log.version = page.version;
            let local = self.core.local();
            log.edits.extend(page.edits.iter().filter_map(|edit| self.seal.open(edit, local)));
            if !page.has_more {
                break;
            }
        }
        // Once these are read, so that none is missed if this is dropped.
        self.edit_history.store(history, Ordering::Relaxed);
        Ok(log)
    }
}
