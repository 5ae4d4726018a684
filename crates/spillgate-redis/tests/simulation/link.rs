use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate::Timestamp;
use spillgate_redis::Name;
use spillgate_redis::backend::{
    Alive, Announcement, Backend, BackendError, EditPage, Entry, Exchange, Fault, Op, PermitCall,
    PermitOp, PermitReply, Reply, SealedEdit, Swap, Swapped,
};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use crate::simulation::plan::{Flaw, Network};
use crate::simulation::random::Random;
use crate::simulation::world::{EDITS, SHARDS, World};

/// How a node reaches Redis: messages are late, overtake each other and are lost.
/// Clones are the same link.
#[derive(Clone, Debug)]
pub(crate) struct Link(Arc<SimLinkState>);

#[derive(Debug)]
struct SimLinkState {
    world: Arc<World>,
    network: Network,
    flaw: Option<Flaw>,
    /// Until when each shard cannot be reached.
    cut: [Mutex<Instant>; SHARDS as usize],
    /// False once the node has died: it neither sends nor hears anything.
    is_alive: AtomicBool,
    /// When something was sent, in true time.
    sent: Mutex<Vec<Duration>>,
}

/// How long a node waits for an answer.
pub(crate) const TIME_OUT: Duration = Duration::from_millis(50);

impl Link {
    pub(crate) fn new(world: &Arc<World>, network: Network, flaw: Option<Flaw>) -> Self {
        let now = Instant::now();
        Self(Arc::new(SimLinkState {
            world: Arc::clone(world),
            network,
            flaw,
            cut: std::array::from_fn(|_| Mutex::new(now)),
            is_alive: AtomicBool::new(true),
            sent: Mutex::default(),
        }))
    }

    /// When something was sent so far, in true time.
    pub(crate) fn sent(&self) -> Vec<Duration> {
        self.0.sent.lock().unwrap().clone()
    }

    /// Cuts a node off from a shard for a while.
    pub(crate) fn cut(&self, shard: u8, lasts: Duration) {
        *self.0.cut[usize::from(shard)].lock().unwrap() = Instant::now() + lasts;
    }

    pub(crate) fn die(&self) {
        self.0.is_alive.store(false, Ordering::Relaxed);
    }

    /// Sends something to be carried out by a shard, and waits for the answer. What was sent
    /// is carried out even if nobody waits any more.
    async fn send<T: Send + 'static>(
        &self,
        shard: u8,
        run: impl FnOnce(&World) -> T + Send + 'static,
    ) -> Result<T, BackendError> {
        let (answer, answered) = oneshot::channel();
        self.0.sent.lock().unwrap().push(self.0.world.elapsed());
        let there = self.0.world.draw(|random| self.0.network.journey(random));
        let back = self.0.world.draw(|random| self.0.network.journey(random));
        if self.0.is_alive.load(Ordering::Relaxed) {
            let link = self.clone();
            tokio::spawn(async move {
                if link.travel(shard, there).await.is_some() {
                    let turn = link.0.world.turn(shard).await;
                    let reply = run(&link.0.world);
                    drop(turn);
                    if link.travel(shard, back).await.is_some() {
                        // Nobody may wait any more.
                        let _ = answer.send(reply);
                    }
                }
            });
        }
        let heard = async {
            match answered.await {
                Ok(reply) => reply,
                Err(_) => pending().await,
            }
        };
        let late = |_| BackendError::unanswered(Fault::TimedOut, "no answer");
        timeout(TIME_OUT, heard).await.map_err(late)
    }

    /// One way of a message; `None` if it does not arrive.
    async fn travel(&self, shard: u8, journey: Option<Duration>) -> Option<()> {
        sleep(journey?).await;
        let is_cut = *self.0.cut[usize::from(shard)].lock().unwrap() > Instant::now();
        (!is_cut).then_some(())
    }
}

impl Network {
    /// How long a message is on its way; `None` if it is lost.
    fn journey(&self, random: &mut Random) -> Option<Duration> {
        let millis = random.between(self.fastest, self.slowest);
        let times = if random.percent(self.late) { 10 } else { 1 };
        let is_lost = random.percent(self.lost);
        (!is_lost).then(|| Duration::from_millis(millis * times))
    }
}

impl Backend for Link {
    async fn run(&self, entries: &[Entry]) -> Result<Reply, BackendError> {
        let shard = World::shard(&entries[0].name);
        assert!(entries.iter().all(|entry| World::shard(&entry.name) == shard));
        let mut entries = entries.to_vec();
        if self.0.flaw == Some(Flaw::NoCharges) {
            let charges = entries.iter_mut().filter(|entry| matches!(entry.op, Op::Debit { .. }));
            charges.for_each(|entry| entry.op = Op::Look);
        }
        // While a slot moves.
        if entries.len() > 1 && self.0.world.draw(|random| random.percent(10)) {
            return Err(BackendError::new(Fault::Scattered, "the slot is being moved"));
        }
        self.send(shard, move |world| world.run(&entries)).await?
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool, BackendError> {
        let (exchange, flaw) = (exchange.clone(), self.0.flaw);
        let done = self.send(World::shard(&exchange.name), move |world| match flaw {
            Some(Flaw::CarelessExchange) => {
                world.put(&exchange);
                true
            }
            _ => world.exchange(&exchange),
        });
        done.await
    }

    fn slot(&self, name: &Name) -> u16 {
        u16::from(World::shard(name))
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Alive, BackendError> {
        let lifetime = announcement.lifetime;
        // Nodes differ in nothing here, and leave by being silent.
        let Some(own) = announcement.joins else { return Ok(Alive::default()) };
        let count = self.send(0, move |world| world.announce(own.node, lifetime)).await?;
        Ok(Alive { count, ..Alive::default() })
    }

    async fn forget(&self, _: Name) -> Result<(), BackendError> {
        unreachable!("everything can be read here")
    }

    async fn born(&self, _: Name) -> Result<Timestamp, BackendError> {
        Ok(Timestamp::ZERO)
    }

    async fn deposit(&self, _: Name, _: &[u8], _: Duration) -> Result<(), BackendError> {
        unreachable!("nothing is deposited here")
    }

    async fn withdraw(&self, _: Name) -> Result<Option<Vec<u8>>, BackendError> {
        unreachable!("nothing is deposited here")
    }

    async fn publish(&self, edits: &[SealedEdit]) -> Result<bool, BackendError> {
        let edits = edits.to_vec();
        self.send(EDITS, move |world| world.publish(&edits)).await
    }

    async fn edits_since(&self, version: u64) -> Result<EditPage, BackendError> {
        self.send(EDITS, move |world| world.edits_since(version)).await
    }

    async fn permits(&self, call: &PermitCall) -> Result<PermitReply, BackendError> {
        let call = *call;
        if self.0.flaw == Some(Flaw::NoRevokes) && matches!(call.op, PermitOp::Revoke { .. }) {
            return Ok(PermitReply::default());
        }
        let reply = self.send(World::shard(&call.name), move |world| world.permits(&call)).await?;
        Ok(match (self.0.flaw, call.op) {
            (Some(Flaw::GenerousPermits), PermitOp::Hold(wanted)) => {
                PermitReply { held: wanted.usable, is_done: true, ..reply }
            }
            _ => reply,
        })
    }

    async fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Result<Swapped, BackendError> {
        let mut swap = swap.cloned();
        if let (Some(Flaw::ForgottenCalls), Some(swap)) = (self.0.flaw, &mut swap) {
            // The second byte says how many calls follow.
            let calls = usize::from(std::mem::take(&mut swap.new[1]));
            swap.new.drain(2..2 + 8 * calls);
        }
        self.send(World::shard(&name), move |world| world.swap_strikes(name, swap.as_ref())).await
    }
}
