use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use spillgate::Seed;
use spillgate_policy::Error;
use spillgate_policy::store::LimitSpec;
use tokio::sync::watch;
use tracing::warn;

use super::agreement::{Agreement, Differences};
use super::{RedisStore, Settings};
use crate::backend::{Alive, Announcement, Backend, BackendError, Fault, Member, Result};
use crate::fingerprint::{Fingerprint, Fingerprints};
use crate::{Name, Secret};

/// The nodes that share a Redis, and whether their configuration agrees with this one.
pub(super) struct Nodes {
    /// A random name of this node.
    own: Name,
    configured: Option<NonZeroU32>,
    /// Nodes that share with this one, itself included, by the last reply; zero until the first.
    effective: AtomicU32,
    /// Created on demand: it takes milliseconds.
    fingerprints: OnceLock<Fingerprints>,
    /// The fingerprint of this node, once it has limits.
    fingerprint: watch::Sender<Option<Fingerprint>>,
    /// True if this node refuses to join others that differ.
    refuses: bool,
    /// `None` until the others were looked up.
    agreement: watch::Sender<Option<Agreement>>,
    announced: Mutex<Option<Member>>,
}

/// How often a node announces itself.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long an announcement lasts: a few may be lost.
const LIFETIME: Duration = Duration::from_secs(5);

/// Up to so many nodes list all others each time; beyond, each lists less often, to bound the load
/// on Redis.
const LISTED: u32 = 64;

/// How often a node that may refuse to join looks up the others.
const LOOKS: u32 = 5;

impl<B: Backend> RedisStore<B> {
    /// The fingerprint of this node, once it has limits.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.core.nodes.fingerprint()
    }

    /// Waits until this node, which must have limits, has joined the others, or Redis does not
    /// answer.
    ///
    /// # Errors
    ///
    /// If it [refused](Settings::refuse_mismatch) to join because others have another secret or
    /// policy.
    pub async fn join(&self) -> Result<(), Error> {
        if !self.core.nodes.refuses || self.announcing.is_none() {
            return Ok(());
        }
        match self.core.nodes.first_agreement().await.mismatch() {
            None => Ok(()),
            Some(differs) => Err(Error::store(differs)),
        }
    }

    /// Announces the fingerprint of new limits.
    pub(super) fn set_fingerprint(&self, limits: &[LimitSpec]) {
        if self.announcing.is_some() {
            self.core.nodes.set_limits(limits, &self.secret);
        }
    }
}

impl Nodes {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            own: Name::from_bytes(Seed::random().to_bytes()),
            configured: settings.nodes,
            effective: AtomicU32::new(0),
            fingerprints: OnceLock::new(),
            fingerprint: watch::Sender::new(None),
            refuses: settings.refuses_mismatch,
            agreement: watch::Sender::new(None),
            announced: Mutex::new(None),
        }
    }

    pub(super) fn own(&self) -> Name {
        self.own
    }

    /// The number of nodes, if known.
    pub(super) fn known(&self) -> Option<NonZeroU32> {
        // Relaxed: one number, which orders nothing else.
        self.configured.or_else(|| NonZeroU32::new(self.effective.load(Ordering::Relaxed)))
    }

    /// The number of nodes, and one until it is known.
    pub(super) fn assumed(&self) -> NonZeroU32 {
        self.known().unwrap_or(NonZeroU32::MIN)
    }

    /// Sets the limits of this node.
    pub(super) fn set_limits(&self, limits: &[LimitSpec], secret: &Secret) {
        let fingerprints = self.fingerprints.get_or_init(|| Fingerprints::new(secret));
        let fingerprint = Some(fingerprints.of(limits));
        self.fingerprint.send_if_modified(|own| std::mem::replace(own, fingerprint) != fingerprint);
    }

    /// The fingerprint of this node, once it has limits.
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        *self.fingerprint.borrow()
    }

    /// How the others compare, as far as known.
    pub(super) fn agreement(&self) -> Agreement {
        self.agreement.borrow().unwrap_or_default()
    }

    /// The same, after the first lookup.
    pub(super) async fn first_agreement(&self) -> Agreement {
        let mut agreement = self.agreement.subscribe();
        agreement.wait_for(Option::is_some).await.ok().and_then(|known| *known).unwrap_or_default()
    }

    /// Announces this node periodically, once it has limits. During an outage the last reply
    /// stands.
    pub(super) async fn announce<B: Backend>(&self, backend: &B) {
        let mut fingerprint = self.fingerprint.subscribe();
        if fingerprint.wait_for(Option::is_some).await.is_err() {
            return;
        }
        if self.refuses && self.peek_others(backend).await.mismatch().is_some() {
            return;
        }
        let mut roster = Roster::default();
        loop {
            let own = *fingerprint.borrow_and_update();
            match self.send(backend, own, roster.lists()).await {
                Ok(alive) => self.update(own, &alive, &mut roster),
                Err(why) => roster.failed(&why),
            }
            // A reload is announced at once.
            let _ = tokio::time::timeout(INTERVAL, fingerprint.changed()).await;
        }
    }

    /// Removes this node from the list.
    pub(super) async fn leave<B: Backend>(&self, backend: &B) {
        let Some(own) = self.announced().take() else { return };
        let leave = announcement(None, Some(own), false);
        // If it fails, the announcement expires within seconds.
        let _ = backend.announce(&leave).await;
    }

    /// Looks up the others without joining. If that fails, none are assumed.
    async fn peek_others<B: Backend>(&self, backend: &B) -> Agreement {
        let mut agreement = Agreement::default();
        for _ in 0..LOOKS {
            if let Ok(alive) = backend.announce(&announcement(None, None, true)).await {
                let others = alive.others.unwrap_or_default();
                agreement = Agreement::new(self.fingerprint(), &others);
                break;
            }
            tokio::time::sleep(INTERVAL / 10).await;
        }
        self.agreement.send_replace(Some(agreement));
        agreement
    }

    async fn send<B: Backend>(
        &self,
        backend: &B,
        fingerprint: Option<Fingerprint>,
        lists: bool,
    ) -> Result<Alive> {
        let own = Member { node: self.own, fingerprint };
        let before = self.announced().replace(own);
        let before = before.filter(|before| *before != own);
        let announced = backend.announce(&announcement(Some(own), before, lists)).await;
        if let (Err(_), Some(before)) = (&announced, before) {
            // It may still be listed: remove it the next time.
            *self.announced() = Some(before);
        }
        announced
    }

    fn update(&self, own: Option<Fingerprint>, alive: &Alive, roster: &mut Roster) {
        if let Some(others) = &alive.others {
            let other_prefixes = alive.other_prefixes;
            let agreement = Agreement { other_prefixes, ..Agreement::new(own, others) };
            self.agreement.send_replace(Some(agreement));
            roster.differences.log(own, others, &agreement);
            roster.apart = agreement.other_secret;
        }
        let nodes = roster.count(alive.count);
        self.effective.store(nodes, Ordering::Relaxed);
    }

    fn announced(&self) -> MutexGuard<'_, Option<Member>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn announcement(joins: Option<Member>, leaves: Option<Member>, lists: bool) -> Announcement {
    Announcement { joins, leaves, lifetime: LIFETIME, lists }
}

/// What is known of the others.
#[derive(Default)]
struct Roster {
    /// Nodes alive at the last reply, and those that share with this one.
    alive: u32,
    sharing: u32,
    /// Nodes with another secret.
    apart: u32,
    /// Announcements since the others were last listed.
    unlisted: u32,
    differences: Differences,
    has_failed: bool,
}

impl Roster {
    /// Whether to list the others this time.
    fn lists(&mut self) -> bool {
        let is_time = self.unlisted >= self.alive / LISTED;
        self.unlisted = if is_time { 0 } else { self.unlisted + 1 };
        is_time
    }

    /// The number of nodes that share with this one, given those alive.
    ///
    /// A lower number must be seen twice. A Redis that was flushed knows only the nodes that have
    /// announced themselves since: the first would take itself for the only one, and would use the
    /// whole quota in the next outage.
    fn count(&mut self, alive: u32) -> u32 {
        self.alive = alive;
        let sharing = alive.saturating_sub(self.apart).max(1);
        sharing.max(std::mem::replace(&mut self.sharing, sharing))
    }

    /// Logs once that the list is unusable, unless it is an outage.
    fn failed(&mut self, why: &BackendError) {
        if matches!(why.fault(), Fault::Corrupt | Fault::Nonsense) && !self.has_failed {
            self.has_failed = true;
            warn!(
                error = %why,
                "unusable list of nodes in Redis; delete the key PREFIXnodes (default: \
                 spillgate:nodes)"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_nodes_together_list_as_many_times_a_second_however_many_they_are() {
        for (alive, every) in [(1, 1), (63, 1), (64, 2), (1000, 16)] {
            let mut roster = Roster { alive, ..Roster::default() };
            let lists = (0..160).filter(|_| roster.lists()).count();
            assert_eq!(lists, 160 / every, "{alive}");
        }
    }

    #[test]
    fn a_lower_number_is_believed_the_second_time_and_those_of_another_secret_do_not_count() {
        let mut roster = Roster::default();
        assert_eq!([3, 3, 1, 1].map(|alive| roster.count(alive)), [3, 3, 3, 1]);
        roster.apart = 2;
        assert_eq!([5, 5, 2].map(|alive| roster.count(alive)), [3, 3, 3]);
        assert_eq!(roster.count(2), 1, "this one is there in any case");
    }
}
