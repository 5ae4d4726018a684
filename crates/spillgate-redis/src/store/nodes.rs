use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use spillgate::Seed;
use spillgate_policy::Error;
use spillgate_policy::store::LimitSpec;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
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
    announced: Mutex<Announced>,
}

/// What was announced, and heard in reply.
#[derive(Default)]
struct Announced {
    /// `None` before this node has joined, and after it has left.
    own: Option<Member>,
    /// When that was last sent.
    sent: Option<Instant>,
    roster: Roster,
}

/// An announcement under way.
pub(super) struct Announcing {
    announcement: Announcement,
    fingerprint: Option<Fingerprint>,
}

/// A node announces itself about once a second: after so long with a call that asks for edits, which
/// comes more often than that, and if there is none by itself.
const SOON: Duration = Duration::from_millis(750);
const LATE: Duration = Duration::from_millis(1100);

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
            announced: Mutex::default(),
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
        loop {
            fingerprint.borrow_and_update();
            let begun = self.begin();
            let alive = backend.announce(&begun.announcement).await;
            self.end(&begun, alive);
            self.wait_until_late(&mut fingerprint).await;
        }
    }

    /// Waits until no other call has announced this node in time. A reload is announced at once.
    async fn wait_until_late(&self, fingerprint: &mut watch::Receiver<Option<Fingerprint>>) {
        loop {
            let Some(sent) = self.announced().sent else { return };
            if sent.elapsed() >= LATE
                || timeout_at(sent + LATE, fingerprint.changed()).await.is_ok()
            {
                return;
            }
        }
    }

    /// Begins to announce this node with another call, if it has joined and it is time.
    pub(super) fn begin_if_due(&self) -> Option<Announcing> {
        let is_due = {
            let announced = self.announced();
            announced.own.is_some() && announced.sent.is_none_or(|sent| sent.elapsed() >= SOON)
        };
        is_due.then(|| self.begin())
    }

    fn begin(&self) -> Announcing {
        let fingerprint = self.fingerprint();
        let own = Member { node: self.own, fingerprint };
        let mut announced = self.announced();
        announced.sent = Some(Instant::now());
        let before = announced.own.replace(own).filter(|before| *before != own);
        let announcement = announcement(Some(own), before, announced.roster.lists());
        Announcing { announcement, fingerprint }
    }

    /// Notes the reply to an announcement.
    pub(super) fn end(&self, begun: &Announcing, alive: Result<Alive>) {
        let mut announced = self.announced();
        match alive {
            Ok(alive) => self.update(begun.fingerprint, &alive, &mut announced.roster),
            Err(why) => {
                announced.roster.failed(&why);
                // It may still be listed: it is removed the next time.
                if announced.own.is_some() && begun.announcement.leaves.is_some() {
                    announced.own = begun.announcement.leaves;
                }
            }
        }
    }

    /// Removes this node from the list.
    pub(super) async fn leave<B: Backend>(&self, backend: &B) {
        let Some(own) = self.announced().own.take() else { return };
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
            tokio::time::sleep(LATE / 10).await;
        }
        self.agreement.send_replace(Some(agreement));
        agreement
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

    fn announced(&self) -> MutexGuard<'_, Announced> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn announcement(joins: Option<Member>, leaves: Option<Member>, lists: bool) -> Announcement {
    Announcement { joins, leaves, lifetime: LIFETIME, lists }
}

impl Announcing {
    pub(super) fn announcement(&self) -> &Announcement {
        &self.announcement
    }
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
                "unusable list of nodes in Redis; delete the key PREFIXnodes:{{edits}} \
                 (default: spillgate:nodes:{{edits}})"
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
