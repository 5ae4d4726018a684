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
use crate::backend::{Alive, Announcement, Backend, BackendError, Fault, Member};
use crate::fingerprint::{Fingerprint, Fingerprints};
use crate::{Name, Secret};

/// Which nodes there are, and whether they share with this one.
pub(super) struct Nodes {
    /// This one, by a name that nobody else has.
    own: Name,
    configured: Option<NonZeroU32>,
    /// Those that share with this one, as Redis last said, itself included; zero until it has.
    effective: AtomicU32,
    /// Made when it is needed, since that takes a while.
    fingerprints: OnceLock<Fingerprints>,
    /// What this node shares by, once it has limits.
    fingerprint: watch::Sender<Option<Fingerprint>>,
    /// True if this node does not join others that differ.
    refuses: bool,
    /// How it is with the others; `None` until it was looked for the first time.
    agreement: watch::Sender<Option<Agreement>>,
    announced: Mutex<Option<Member>>,
}

/// How often a node tells that it is there.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long it counts after it has: a few times may be lost.
const LIFETIME: Duration = Duration::from_secs(5);

/// So many nodes list all others each time. If there are more, each does so less often, or they would
/// keep Redis busy.
const LISTED: u32 = 64;

/// How often a node that may refuse tries to look at the others before it goes on without.
const LOOKS: u32 = 5;

impl<B: Backend> RedisStore<B> {
    /// What this node shares limits by, once it has any.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.core.nodes.fingerprint()
    }

    /// Waits until this node, which must have limits by now, has joined the others, unless the
    /// engine does not answer.
    ///
    /// # Errors
    ///
    /// If it has [refused](Settings::refuse_mismatch) to, since they have another secret or policy.
    pub async fn join(&self) -> Result<(), Error> {
        if !self.core.nodes.refuses() || self.announcing.is_none() {
            return Ok(());
        }
        match self.core.nodes.first_agreement().await.mismatch() {
            None => Ok(()),
            Some(differs) => Err(Error::store(differs)),
        }
    }

    /// Tells the others by what this node shares from now on.
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

    /// How many, if that is known.
    pub(super) fn known(&self) -> Option<NonZeroU32> {
        // Relaxed: one number, which orders nothing else.
        self.configured.or_else(|| NonZeroU32::new(self.effective.load(Ordering::Relaxed)))
    }

    /// How many, and one until that is known.
    pub(super) fn assumed(&self) -> NonZeroU32 {
        self.known().unwrap_or(NonZeroU32::MIN)
    }

    /// Notes what limits this node has.
    pub(super) fn set_limits(&self, limits: &[LimitSpec], secret: &Secret) {
        let fingerprints = self.fingerprints.get_or_init(|| Fingerprints::new(secret));
        let fingerprint = Some(fingerprints.of(limits));
        self.fingerprint.send_if_modified(|own| std::mem::replace(own, fingerprint) != fingerprint);
    }

    /// What this node shares by, once it has limits.
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        *self.fingerprint.borrow()
    }

    /// True if this node does not join others that differ.
    pub(super) fn refuses(&self) -> bool {
        self.refuses
    }

    /// How it is with the others, as far as this node knows.
    pub(super) fn agreement(&self) -> Agreement {
        self.agreement.borrow().unwrap_or_default()
    }

    /// The same, once it was looked for the first time.
    pub(super) async fn first_agreement(&self) -> Agreement {
        let mut agreement = self.agreement.subscribe();
        agreement.wait_for(Option::is_some).await.ok().and_then(|known| *known).unwrap_or_default()
    }

    /// Tells that this node is there, again and again, once it has limits. While Redis is
    /// away what it said last stands.
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
            // A reload is told at once.
            let _ = tokio::time::timeout(INTERVAL, fingerprint.changed()).await;
        }
    }

    /// Tells that this node is gone, so that nobody counts it any longer.
    pub(super) async fn leave<B: Backend>(&self, backend: &B) {
        let Some(own) = self.announced().take() else { return };
        let leave = announcement(None, Some(own), false);
        // If it is not heard, it takes the others some seconds to notice.
        let _ = backend.announce(&leave).await;
    }

    /// Looks at the others without joining them. If that cannot be done it is as if there were none.
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
    ) -> Result<Alive, BackendError> {
        let own = Member { node: self.own, fingerprint };
        let before = self.announced().replace(own);
        let before = before.filter(|before| *before != own);
        let told = backend.announce(&announcement(Some(own), before, lists)).await;
        if let (Err(_), Some(before)) = (&told, before) {
            // It may still be there, and is to be taken away the next time.
            *self.announced() = Some(before);
        }
        told
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

/// What was heard of the others so far.
#[derive(Default)]
struct Roster {
    /// How many nodes there were the last time, and how many share with this one.
    alive: u32,
    sharing: u32,
    /// How many have another secret.
    apart: u32,
    /// How many times others were not listed.
    unlisted: u32,
    differences: Differences,
    has_failed: bool,
}

impl Roster {
    /// Whether it is time to list the others.
    fn lists(&mut self) -> bool {
        let is_time = self.unlisted >= self.alive / LISTED;
        self.unlisted = if is_time { 0 } else { self.unlisted + 1 };
        is_time
    }

    /// How many nodes share with this one, if so many are alive.
    ///
    /// A lower number is believed when it is told twice. Redis that has forgotten everything
    /// knows only of those who have come since: the first would take itself for the only one,
    /// and by its share of all in the next outage. By the second time all others have come.
    fn count(&mut self, alive: u32) -> u32 {
        self.alive = alive;
        let sharing = alive.saturating_sub(self.apart).max(1);
        sharing.max(std::mem::replace(&mut self.sharing, sharing))
    }

    /// Logs once that nodes cannot be counted, if that is nobody's outage.
    fn failed(&mut self, why: &BackendError) {
        if matches!(why.fault(), Fault::Corrupt | Fault::Nonsense) && !self.has_failed {
            self.has_failed = true;
            warn!(
                error = %why,
                "the list of nodes in the store cannot be used; delete the key PREFIX nodes \
                 (spillgate:nodes by default)"
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
