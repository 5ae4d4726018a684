use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use spillgate::{Clock, Quota, Timestamp};
use spillgate_redis::backend::{
    BackendError, EditPage, Entry, Exchange, Model, Op, PermitCall, PermitReply, Reply, SealedEdit,
    Swap, Swapped,
};
use spillgate_redis::{Name, State};
use tokio::sync::{Mutex as Turn, MutexGuard as TurnGuard};
use tokio::time::{Instant, sleep_until};

use crate::simulation::random::{Random, mix};

/// Redis, and all that is true whoever knows it.
#[derive(Debug)]
pub(crate) struct World {
    began: Instant,
    /// Each has a part of the states, and a clock of its own.
    shards: Vec<Model>,
    /// Held by who is carried out by a shard, one after the other.
    turns: Vec<Turn<()>>,
    inner: Mutex<WorldState>,
}

#[derive(Debug)]
struct WorldState {
    random: Random,
    /// When states are forgotten.
    expiring: HashMap<Name, Timestamp>,
    allocated: HashMap<Quota, i128>,
    /// Where what ends at a word begins, by name and word.
    bases: HashMap<(Name, u64), u64>,
    writes: Vec<Write>,
    forgiven: HashMap<Quota, u64>,
    refunds: Vec<Refund>,
    /// When each node was last heard of.
    nodes: HashMap<Name, Duration>,
    /// Until when each shard carries out nothing.
    stalled: [Instant; SHARDS as usize],
    /// Changes with everything that happens.
    trace: u64,
}

/// Tokens that were given back by somebody who had spent them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refund {
    pub(crate) quota: Quota,
    pub(crate) at: Duration,
    pub(crate) tokens: u64,
}

/// A state that was replaced.
#[derive(Clone, Debug)]
struct Write {
    at: Duration,
    name: Name,
    before: Option<State>,
    quota: Quota,
    /// What was given away with it, in nanoseconds.
    given: u64,
}

/// What a world has come to.
#[derive(Debug)]
pub(crate) struct History {
    /// By quota, how much time of buckets was given away and not given back, in nanoseconds.
    pub(crate) allocated: HashMap<Quota, i128>,
    pub(crate) refunds: Vec<Refund>,
    /// By quota, what was given away and then forgotten by a failover, in nanoseconds.
    pub(crate) forgiven: HashMap<Quota, u64>,
    pub(crate) trace: u64,
}

pub(crate) const SHARDS: u8 = 3;

/// The shard that has the edits.
pub(crate) const EDITS: u8 = 0;

/// How far the clocks of two shards are apart.
const APART: u64 = 1_000_000;

/// For how long a state is kept that says nothing any more.
pub(crate) const MARGIN: Duration = Duration::from_secs(1);

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            began: Instant::now(),
            shards: (0..SHARDS).map(|_| Model::default()).collect(),
            turns: (0..SHARDS).map(|_| Turn::default()).collect(),
            inner: Mutex::new(WorldState {
                random: Random::new(seed),
                expiring: HashMap::new(),
                allocated: HashMap::new(),
                bases: HashMap::new(),
                writes: Vec::new(),
                forgiven: HashMap::new(),
                refunds: Vec::new(),
                nodes: HashMap::new(),
                stalled: [Instant::now(); SHARDS as usize],
                trace: seed,
            }),
        }
    }

    /// The true time.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// When a call that began at `called` was decided, in true time: at a shard's `now`, or
    /// by a node itself, which may take it to be later than it is. Whatever is told, it was
    /// not before the call, and is not to come.
    pub(crate) fn true_time(&self, now: Timestamp, called: Duration) -> Duration {
        let message = Duration::from_nanos(now.as_nanos() % (APART * 1_000_000_000));
        message.clamp(called, self.elapsed())
    }

    /// Draws from what is random.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.inner().random)
    }

    /// Notes that something happened.
    pub(crate) fn trace(&self, bits: u64) {
        let now = self.elapsed().as_nanos() as u64;
        let mut inner = self.inner();
        inner.trace = mix(inner.trace ^ bits).wrapping_add(now);
    }

    /// The shard that has the states of a name.
    pub(crate) fn shard(name: &Name) -> u8 {
        name.as_bytes()[0] % SHARDS
    }

    pub(crate) fn run(&self, entries: &[Entry]) -> Result<Reply, BackendError> {
        let (model, now) = self.model(&entries[0].name);
        for entry in entries {
            self.expire(model, entry.name, now);
        }
        // What one name's entries do together; each is named once in nearly all calls.
        let before: Vec<_> = entries.iter().map(|entry| model.state(&entry.name)).collect();
        let reply = model.run_now(entries)?;
        for (entry, before) in entries.iter().zip(before) {
            let after = model.state(&entry.name);
            if after != before {
                self.wrote(entry.name, before, after.as_ref(), now);
                self.note_refund(entry);
            }
            self.trace(after.map_or(0, |state| state.word.to_bits()));
        }
        Ok(reply)
    }

    pub(crate) fn exchange(&self, exchange: &Exchange) -> bool {
        let (model, now) = self.model(&exchange.name);
        self.expire(model, exchange.name, now);
        let before = model.state(&exchange.name);
        let is_done = model.exchange_now(exchange);
        if is_done {
            self.wrote(exchange.name, before, exchange.new.as_ref(), now);
            let mut inner = self.inner();
            match exchange.expires {
                Some(after) => inner.expiring.insert(exchange.name, now + after),
                None => inner.expiring.remove(&exchange.name),
            };
        }
        self.trace(u64::from(is_done));
        is_done
    }

    pub(crate) fn permits(&self, call: &PermitCall) -> PermitReply {
        let (model, _) = self.model(&call.name);
        let reply = model.permits_now(call);
        self.trace(u64::from(reply.held));
        reply
    }

    pub(crate) fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Swapped {
        let (model, _) = self.model(&name);
        let swapped = model.swap_strikes_now(name, swap);
        self.trace(u64::from(swapped.is_swapped));
        swapped
    }

    pub(crate) fn publish(&self, edits: &[SealedEdit]) -> bool {
        self.model_of_edits().publish_now(edits)
    }

    pub(crate) fn edits_since(&self, version: u64) -> EditPage {
        let page = self.model_of_edits().edits_since_now(version);
        self.trace(page.edits.len() as u64);
        page
    }

    fn model_of_edits(&self) -> &Model {
        let model = &self.shards[usize::from(EDITS)];
        model.set_now(self.now(EDITS));
        model
    }

    /// Puts a state there whatever was there before, as no Redis does.
    pub(crate) fn put(&self, exchange: &Exchange) {
        let (model, _) = self.model(&exchange.name);
        model.set_state(exchange.name, exchange.new.clone());
    }

    /// Puts a replica in place of a shard that has not heard of what was written lately.
    pub(crate) fn fail_over(&self, shard: u8, lag: Duration) {
        let since = self.elapsed().saturating_sub(lag);
        let mut inner = self.inner();
        let inner = &mut *inner;
        let is_lost = |write: &Write| write.at > since && Self::shard(&write.name) == shard;
        for lost in inner.writes.iter().rev().filter(|write| is_lost(write)) {
            self.shards[usize::from(shard)].set_state(lost.name, lost.before.clone());
            *inner.forgiven.entry(lost.quota).or_default() += lost.given;
        }
        inner.writes.retain(|write| !is_lost(write));
    }

    /// Carries out nothing for a while.
    pub(crate) fn stall(&self, shard: u8, lasts: Duration) {
        self.inner().stalled[usize::from(shard)] = Instant::now() + lasts;
    }

    /// Waits until a shard carries out what arrives now: in that order.
    pub(crate) async fn turn(&self, shard: u8) -> TurnGuard<'_, ()> {
        let turn = self.turns[usize::from(shard)].lock().await;
        let stalled = self.inner().stalled[usize::from(shard)];
        if stalled > Instant::now() {
            sleep_until(stalled).await;
        }
        turn
    }

    /// Hears of a node, and tells how many there are.
    pub(crate) fn announce(&self, node: Name, lifetime: Duration) -> u32 {
        let now = self.elapsed();
        let nodes = &mut self.inner().nodes;
        nodes.insert(node, now);
        nodes.values().filter(|heard| now - **heard < lifetime).count() as u32
    }

    pub(crate) fn history(&self) -> History {
        let inner = self.inner();
        let (allocated, refunds) = (inner.allocated.clone(), inner.refunds.clone());
        History { allocated, refunds, forgiven: inner.forgiven.clone(), trace: inner.trace }
    }

    fn now(&self, shard: u8) -> Timestamp {
        Timestamp::from_secs(APART * u64::from(shard + 1)) + self.elapsed()
    }

    fn model(&self, name: &Name) -> (&Model, Timestamp) {
        let shard = Self::shard(name);
        let (model, now) = (&self.shards[usize::from(shard)], self.now(shard));
        model.set_now(now);
        (model, now)
    }

    fn expire(&self, model: &Model, name: Name, now: Timestamp) {
        let mut inner = self.inner();
        if inner.expiring.get(&name).is_some_and(|at| *at <= now) {
            inner.expiring.remove(&name);
            model.set_state(name, None);
        }
    }

    /// Keeps account of what is given away and given back.
    fn wrote(&self, name: Name, before: Option<State>, after: Option<&State>, now: Timestamp) {
        let Some(State { terms, word, .. }) = after else { return };
        let (left, found) =
            (word.to_bits(), before.as_ref().map_or(0, |state| state.word.to_bits()));
        let mut inner = self.inner();
        let given = if left > found {
            let base = found.max(now.as_nanos());
            inner.bases.insert((name, left), base);
            i128::from(left) - i128::from(base)
        } else {
            // What was before the last that was given away has passed unused.
            let base = inner.bases.get(&(name, found)).copied().unwrap_or(0);
            i128::from(left.max(base)) - i128::from(found)
        };
        *inner.allocated.entry(terms.quota).or_default() += given;
        let (at, quota, given) = (self.elapsed(), terms.quota, given.max(0) as u64);
        inner.writes.push(Write { at, name, before, quota, given });
        inner.expiring.insert(name, Timestamp::from_nanos(left) + MARGIN);
    }

    fn note_refund(&self, entry: &Entry) {
        if let Op::GiveBack { amount: tokens, .. } = entry.op {
            let refund = Refund { quota: entry.terms.quota, at: self.elapsed(), tokens };
            self.inner().refunds.push(refund);
        }
    }

    fn inner(&self) -> MutexGuard<'_, WorldState> {
        self.inner.lock().unwrap()
    }
}

/// The clock of a node, which is not quite right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeClock {
    pub(crate) began: Instant,
    /// What it counts while a million nanoseconds pass.
    pub(crate) pace: u64,
}

impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        let nanos = self.began.elapsed().as_nanos() * u128::from(self.pace) / 1_000_000;
        Timestamp::from_secs(77) + Duration::from_nanos(nanos as u64)
    }
}
