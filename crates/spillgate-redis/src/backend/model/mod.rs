//! A backend in memory that decides with the library itself: the reference for the scripts, and the
//! base of simulations.

mod edits;
mod permits;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::Timestamp;
use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};

use self::edits::Edits;
use self::permits::HeldByAll;
use super::{
    Alive, Announcement, Backend, EditPage, Entry, Exchange, Found, Member, Op, PermitCall,
    PermitReply, Reply, Result, SealedEdit, Swap, Swapped, taken,
};
use crate::{Fingerprint, Name, State};

/// What Redis does, in memory: replies come at once, and time is [set](Self::set_now).
#[derive(Debug, Default)]
pub struct Model(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    now: Timestamp,
    states: HashMap<Name, State>,
    born: HashMap<Name, Timestamp>,
    nodes: HashMap<Member, Timestamp>,
    /// With their expiry.
    deposits: HashMap<Name, (Vec<u8>, Timestamp)>,
    edits: Edits,
    permits: HeldByAll,
    strikes: HashMap<Name, (Vec<u8>, Timestamp)>,
}

impl Model {
    /// An empty model.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self(Mutex::new(Kept { now, ..Kept::default() }))
    }

    /// Sets the clock.
    pub fn set_now(&self, now: Timestamp) {
        self.kept().now = now;
    }

    /// The state of a caller.
    pub fn state(&self, name: &Name) -> Option<State> {
        self.kept().states.get(name).cloned()
    }

    /// Sets or deletes a state.
    pub fn set_state(&self, name: Name, state: Option<State>) {
        put(&mut self.kept().states, name, state);
    }

    /// Deletes everything, like a restart without persistence.
    pub fn flush(&self) {
        let mut kept = self.kept();
        *kept = Kept { now: kept.now, ..Kept::default() };
    }

    /// [Runs](Backend::run) entries at once.
    ///
    /// # Errors
    ///
    /// Never.
    pub fn run_now(&self, entries: &[Entry]) -> Result<Reply> {
        let mut kept = self.kept();
        let now = kept.now;
        // Later entries see what earlier ones leave; it is kept only if all pass.
        let mut next = kept.states.clone();
        let mut answers = SmallVec::new();
        let mut is_refused = false;
        for entry in entries {
            let (found, left) = decide(entry, next.get(&entry.name), now);
            let is_shadow = matches!(entry.op, Op::Spend { is_shadow: true, .. });
            match found {
                Found::Passed(_) => put(&mut next, entry.name, left),
                Found::Denied(_) => is_refused |= !is_shadow,
                Found::Other(_) => is_refused |= entry.op != Op::Read,
                Found::Gone => is_refused = true,
            }
            answers.push(found);
        }
        if !is_refused {
            kept.states = next;
        }
        Ok(Reply { now, answers })
    }

    /// [Swaps](Backend::swap_strikes) strikes at once.
    pub fn swap_strikes_now(&self, name: Name, swap: Option<&Swap>) -> Swapped {
        let mut kept = self.kept();
        let now = kept.now;
        kept.strikes.retain(|_, (value, expires)| !value.is_empty() && *expires > now);
        let value = kept.strikes.get(&name).map_or_else(Vec::new, |(value, _)| value.clone());
        let Some(swap) = swap.filter(|swap| swap.old == value) else {
            return Swapped { now, is_swapped: false, value };
        };
        kept.strikes.insert(name, (swap.new.clone(), now + swap.ttl));
        Swapped { now, is_swapped: true, value: swap.new.clone() }
    }

    /// [Exchanges](Backend::exchange) a state at once.
    pub fn exchange_now(&self, exchange: &Exchange) -> bool {
        let mut kept = self.kept();
        let is_there = kept.states.get(&exchange.name) == exchange.old.as_ref();
        if is_there {
            put(&mut kept.states, exchange.name, exchange.new.clone());
        }
        is_there
    }

    /// [Holds](Backend::permits), renews or releases permits at once.
    pub fn permits_now(&self, call: &PermitCall) -> PermitReply {
        let mut kept = self.kept();
        let now = kept.now;
        kept.permits.run(call, now)
    }

    /// [Publishes](Backend::publish) edits at once.
    pub fn publish_now(&self, edits: &[SealedEdit]) -> bool {
        let mut kept = self.kept();
        let now = kept.now;
        kept.edits.publish(edits, now)
    }

    /// The [edits since](Backend::edits_since) a version, at once.
    pub fn edits_since_now(&self, version: u64) -> EditPage {
        let mut kept = self.kept();
        let now = kept.now;
        kept.edits.since(version, now)
    }

    /// Goes on as a replica that knows the edits up to a version. Edits that were replaced later are
    /// lost as well.
    pub fn fail_over_edits(&self, version: u64) {
        self.kept().edits.fail_over(version);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn put(states: &mut HashMap<Name, State>, name: Name, state: Option<State>) {
    match state {
        Some(state) => states.insert(name, state),
        None => states.remove(&name),
    };
}

/// What an entry finds, and the state that it leaves.
fn decide(entry: &Entry, stored: Option<&State>, now: Timestamp) -> (Found, Option<State>) {
    let terms = entry.terms;
    let is_plain = |stored: &State| stored.terms == terms && stored.past.is_none();
    if let Some(stored) = stored.filter(|stored| entry.op == Op::Read || !is_plain(stored)) {
        return (Found::Other(stored.clone()), Some(stored.clone()));
    }
    if stored.is_none() && terms.is_override {
        return (Found::Gone, None);
    }
    let word = stored.map_or(entry.fresh, |state| state.word);
    let writes_nothing = match entry.op {
        Op::Look | Op::Read | Op::Spend { cost: 0, .. } | Op::Debit { amount: 0, .. } => true,
        // An absent caller has nothing to get back or forget.
        Op::GiveBack { amount, .. } => amount == 0 || stored.is_none(),
        Op::Reset => stored.is_none(),
        Op::Spend { .. } | Op::Take { .. } | Op::Debit { .. } => false,
    };
    if writes_nothing {
        return (Found::Passed(word), stored.cloned());
    }
    match written(entry.algorithm.starting_from(entry.fresh), word, now, entry.op) {
        Some(word_left) => (Found::Passed(word), Some(State::new(terms, word_left))),
        None => (Found::Denied(word), stored.cloned()),
    }
}

/// The word that an operation leaves; `None` if denied.
fn written(algorithm: AnyAlgorithm, word: Word, now: Timestamp, op: Op) -> Option<Word> {
    match op {
        Op::Spend { cost, .. } => algorithm.spend(word, now, cost),
        Op::Take { least, most } => {
            let taken = taken(&algorithm, word, now, least, most);
            if taken == 0 { None } else { algorithm.spend(word, now, taken) }
        }
        Op::Debit { .. } | Op::GiveBack { .. } | Op::Look | Op::Read | Op::Reset => {
            Some(op.left(&algorithm, word, now))
        }
    }
}

impl Backend for Model {
    async fn run(&self, entries: &[Entry]) -> Result<Reply> {
        self.run_now(entries)
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool> {
        Ok(self.exchange_now(exchange))
    }

    fn slot(&self, _: &Name) -> u16 {
        0
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Alive> {
        let Announcement { joins, leaves, lifetime, lists } = announcement;
        let mut kept = self.kept();
        let now = kept.now;
        kept.nodes.retain(|member, _| Some(*member) != *leaves);
        kept.nodes.extend(joins.map(|member| (member, now)));
        kept.nodes.retain(|_, seen| now.since(*seen) < *lifetime);
        let mut counts: HashMap<Option<Fingerprint>, u32> = HashMap::new();
        for member in kept.nodes.keys().filter(|member| Some(**member) != *joins) {
            *counts.entry(member.fingerprint).or_default() += 1;
        }
        let others = lists.then(|| counts.into_iter().collect());
        Ok(Alive { count: kept.nodes.len() as u32, others, other_prefixes: 0 })
    }

    async fn forget(&self, name: Name) -> Result<()> {
        let mut kept = self.kept();
        kept.states.remove(&name);
        kept.born.remove(&name);
        Ok(())
    }

    async fn born(&self, name: Name) -> Result<Timestamp> {
        let mut kept = self.kept();
        let now = kept.now;
        Ok(*kept.born.entry(name).or_insert(now))
    }

    async fn deposit(&self, name: Name, kept: &[u8], lifetime: Duration) -> Result<()> {
        let mut model = self.kept();
        let expires = model.now + lifetime;
        model.deposits.insert(name, (kept.to_vec(), expires));
        Ok(())
    }

    async fn withdraw(&self, name: Name) -> Result<Option<Vec<u8>>> {
        let mut model = self.kept();
        let now = model.now;
        let found = model.deposits.remove(&name).filter(|(_, expires)| now < *expires);
        Ok(found.map(|(kept, _)| kept))
    }

    async fn publish(&self, edits: &[SealedEdit]) -> Result<bool> {
        Ok(self.publish_now(edits))
    }

    async fn edits_since(&self, version: u64) -> Result<EditPage> {
        Ok(self.edits_since_now(version))
    }

    async fn permits(&self, call: &PermitCall) -> Result<PermitReply> {
        Ok(self.permits_now(call))
    }

    async fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Result<Swapped> {
        Ok(self.swap_strikes_now(name, swap))
    }
}
