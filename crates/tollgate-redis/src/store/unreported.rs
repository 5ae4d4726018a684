//! What was admitted while the engine could not be asked, until it is charged there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tollgate::Timestamp;
use tollgate::algorithm::{Algorithm, AnyAlgorithm, Word};

use super::core::{Caller, Core};
use crate::Name;
use crate::engine::{Engine, EngineError, Fault};

/// Callers that owe the engine something.
///
/// A caller is charged before the engine is asked about it again, and otherwise soon after the
/// engine is back. Who cannot be remembered any more is not charged.
#[derive(Debug, Default)]
pub(super) struct Unreported {
    debts: Mutex<HashMap<Name, Debt>>,
    /// How many there are: mostly none, and then nobody looks.
    count: AtomicUsize,
    /// True while a task is charging them.
    is_reporting: AtomicBool,
}

/// What a caller owes.
#[derive(Debug)]
struct Debt {
    caller: Caller,
    /// What it was let through.
    tokens: u64,
    /// What it has spent of this node's share: of that, what has been refilled is owed no more.
    spent: (AnyAlgorithm, Word),
    /// Held by whoever is charging it.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// Room for so many callers, of some 500 bytes each.
const CALLERS: usize = 65_536;

/// How often it is tried to charge those who do not come again.
const INTERVAL: Duration = Duration::from_millis(100);

/// How many are charged at a time.
const AT_ONCE: usize = 16;

impl Unreported {
    /// How many callers owe something.
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Notes that a caller was let through, and what it has spent of this node's share then.
    pub(super) fn add(&self, caller: &Caller, tokens: u64, spent: (AnyAlgorithm, Word)) {
        let mut debts = self.debts();
        let is_full = debts.len() >= CALLERS;
        let debt = match debts.entry(caller.name) {
            Entry::Occupied(debt) => debt.into_mut(),
            Entry::Vacant(_) if is_full => return,
            Entry::Vacant(place) => {
                let (caller, turn) = (caller.clone(), Arc::default());
                place.insert(Debt { caller, tokens: 0, spent, turn })
            }
        };
        debt.tokens = debt.tokens.saturating_add(tokens);
        debt.spent = spent;
        self.note(&debts);
    }

    /// Notes that a caller owes so much less: it was charged, or has given it back.
    pub(super) fn subtract(&self, name: Name, tokens: u64) {
        if self.len() == 0 {
            return;
        }
        let mut debts = self.debts();
        if let Entry::Occupied(mut debt) = debts.entry(name) {
            debt.get_mut().tokens = debt.get().tokens.saturating_sub(tokens);
            if debt.get().tokens == 0 {
                debt.remove();
            }
        }
        self.note(&debts);
    }

    /// Forgets what a caller owes.
    pub(super) fn forget(&self, name: Name) {
        if self.len() > 0 {
            let mut debts = self.debts();
            debts.remove(&name);
            self.note(&debts);
        }
    }

    /// Whose turn it is to charge a caller, if that owes something.
    fn turn(&self, name: Name) -> Option<Arc<tokio::sync::Mutex<()>>> {
        if self.len() == 0 {
            return None;
        }
        self.debts().get(&name).map(|debt| Arc::clone(&debt.turn))
    }

    /// What a caller was let through, and how much of that it still owes.
    fn owed(&self, name: Name, local: Timestamp) -> (u64, u64) {
        self.debts().get(&name).map_or((0, 0), |debt| (debt.tokens, debt.owed(local)))
    }

    fn callers(&self) -> Vec<Caller> {
        self.debts().values().map(|debt| debt.caller.clone()).collect()
    }

    fn debts(&self) -> MutexGuard<'_, HashMap<Name, Debt>> {
        self.debts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, debts: &HashMap<Name, Debt>) {
        // A hint, which is changed under the lock: who comes too early to see it is asked about
        // at the same time as the caller is admitted elsewhere.
        self.count.store(debts.len(), Ordering::Relaxed);
    }
}

impl Debt {
    fn owed(&self, local: Timestamp) -> u64 {
        let (share, word) = self.spent;
        self.tokens.min(share.owed(word, local))
    }
}

impl<E: Engine> Core<E> {
    /// Charges a caller for what it was let through by a share, if it was: the engine must not be
    /// asked about it before.
    ///
    /// A charge whose answer does not come is made again, so that it may count twice.
    pub(super) async fn report(&self, caller: &Caller) -> Result<(), EngineError> {
        let name = caller.name;
        let Some(turn) = self.unreported.turn(name) else { return Ok(()) };
        let Ok(_turn) = turn.try_lock() else {
            // If somebody else has tried and failed, it makes no sense to try again at once.
            drop(turn.lock().await);
            let is_done = self.unreported.turn(name).is_none();
            let late = "what a caller has spent in an outage could not be charged yet";
            return is_done.then_some(()).ok_or_else(|| EngineError::new(Fault::TimedOut, late));
        };
        // More may be let through while it is charged.
        loop {
            let (tokens, owed) = self.unreported.owed(name, self.local());
            if tokens == 0 {
                return Ok(());
            }
            if owed > 0 {
                self.charge(caller.clone(), owed).await?;
            }
            self.unreported.subtract(name, tokens);
        }
    }

    /// Charges everyone who owes something, if the engine answers. Tells whether nobody is left.
    pub(super) async fn report_all(self: &Arc<Self>) -> bool {
        let (mut reporting, mut is_answered) = (JoinSet::new(), true);
        for caller in self.unreported.callers() {
            let core = Arc::clone(self);
            reporting.spawn(async move { core.report(&caller).await.is_ok() });
            if reporting.len() == AT_ONCE {
                is_answered &= matches!(reporting.join_next().await, Some(Ok(true)));
            }
            if !is_answered {
                break;
            }
        }
        reporting.join_all().await;
        self.unreported.len() == 0
    }

    /// Charges everyone who owes something in the background, as soon as the engine answers.
    pub(super) fn report_later(self: &Arc<Self>) {
        let is_reporting = &self.unreported.is_reporting;
        let Ok(runtime) = Handle::try_current() else { return };
        if !is_reporting.swap(true, Ordering::AcqRel) {
            runtime.spawn(report_until_done(Arc::downgrade(self)));
        }
    }
}

async fn report_until_done<E: Engine>(core: Weak<Core<E>>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(core) = core.upgrade() else { return };
        if core.report_all().await {
            core.unreported.is_reporting.store(false, Ordering::Release);
            // Who came before that has started no other task.
            if core.unreported.len() > 0 {
                core.report_later();
            }
            return;
        }
    }
}
