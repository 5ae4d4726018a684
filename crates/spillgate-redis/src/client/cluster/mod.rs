//! A Cluster: a link per node, and the slot map.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use redis::{Cmd, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::AbortOnDrop;
use super::address::{Address, Target};
use super::failure::Failure;
use super::health::CallCounters;
use super::link::{CallError, Link, warn_of_outage};
use super::session::Plan;
use crate::backend::{BackendError, Fault, Result};

pub(super) mod slot;
mod topology;

use self::topology::Topology;

/// How often the slot map is refreshed.
const LOOK_AROUND: Duration = Duration::from_secs(5);

/// The longest pause between two refreshes while a node is down: nodes that are up answer each.
const LONGEST: Duration = Duration::from_millis(500);

/// Delay before a retry while a slot migrates.
const ON_ITS_WAY: Duration = Duration::from_millis(2);

/// The most redirects of a call.
const REDIRECTS: usize = 8;

/// Routes calls to the node of their slot, and follows migrations.
pub(super) struct Cluster {
    core: Arc<ClusterCore>,
    _keeper: AbortOnDrop,
}

struct ClusterCore {
    plan: Arc<Plan>,
    seeds: Vec<Address>,
    map: ArcSwap<Map>,
    /// Held while the map is replaced.
    changing: Mutex<()>,
    /// Notifies the background task that slots may have moved.
    stale: Notify,
}

/// What is known of the nodes.
#[derive(Clone)]
struct Map {
    topology: Topology,
    links: HashMap<Address, Arc<Link>>,
    /// The error, and since when, if no node could be asked yet.
    unknown: Option<(BackendError, Instant)>,
}

impl Cluster {
    /// Connects to all masters, and fails if one is down.
    pub(super) async fn connect(plan: Arc<Plan>, seeds: Vec<Address>) -> Result<Self> {
        let core = ClusterCore::new(plan, seeds);
        let topology = core.ask_seeds().await?;
        let mut links = HashMap::new();
        for address in topology.masters() {
            let (target, probe_key) = core.of_node(&topology, address);
            let link = Link::connect(core.plan.clone(), target, probe_key).await?;
            links.insert(address.clone(), Arc::new(link));
        }
        core.map.store(Arc::new(Map { topology, links, unknown: None }));
        Ok(Self::keep(core))
    }

    /// Connects in the background. Until then calls fail.
    pub(super) fn connect_later(plan: Arc<Plan>, seeds: Vec<Address>) -> Self {
        let core = ClusterCore::new(plan, seeds);
        core.stale.notify_one();
        Self::keep(core)
    }

    fn keep(core: ClusterCore) -> Self {
        let core = Arc::new(core);
        Self { _keeper: AbortOnDrop::spawn(core.clone().keep()), core }
    }

    /// Makes a call on so many keys of one slot, wherever that moves meanwhile.
    ///
    /// While a slot moves, its nodes run a script over one key, but over several only if one node
    /// has all of them: the others may be as long on their way as the slot has keys. So a call on
    /// several fails at once, [scattered](Fault::Scattered).
    pub(super) async fn call(&self, slot: u16, keys: usize, call: &Cmd) -> Result<Value> {
        let core = &*self.core;
        // The timeout includes redirects and pauses.
        let mut time_out = core.plan.options.command_time_out;
        let mut link = core.owner(slot)?;
        let (mut is_asking, mut redirects) = (false, 0);
        while redirects < REDIRECTS && !time_out.is_zero() {
            let elsewhere = match link.call(call, is_asking, &mut time_out).await {
                Ok(value) => return Ok(value),
                Err(CallError::Failed(error)) => {
                    if error.fault() != Fault::Overloaded {
                        core.stale.notify_one();
                    }
                    return Err(error);
                }
                Err(CallError::TryAgain) if keys > 1 => {
                    let text = format!("slot {slot} of the Cluster is being moved");
                    return Err(BackendError::new(Fault::Scattered, text));
                }
                Err(CallError::TryAgain) => {
                    let began = Instant::now();
                    sleep(ON_ITS_WAY.min(time_out)).await;
                    time_out = time_out.saturating_sub(began.elapsed());
                    continue;
                }
                Err(CallError::Moved(address)) => {
                    core.stale.notify_one();
                    is_asking = false;
                    address
                }
                Err(CallError::Ask(address)) => {
                    is_asking = true;
                    address
                }
            };
            redirects += 1;
            link = core.link_to(&elsewhere);
            let begin = Instant::now();
            link.wait_until_up(begin + time_out).await;
            time_out = time_out.saturating_sub(begin.elapsed());
            if time_out.is_zero() {
                // Not sent: a node that had no time to answer is not a slow one.
                let text = format!("{elsewhere} could not be reached in time");
                return Err(BackendError::new(Fault::TimedOut, text));
            }
        }
        let text = format!("slot {slot} of the Cluster is nowhere to be found");
        Err(BackendError::new(Fault::Unready, text))
    }

    /// Calls in flight to all nodes, and queued.
    pub(super) fn load(&self) -> (u64, u64) {
        let loads = self.core.map.load();
        let loads = loads.links.values().map(|link| link.load());
        loads.fold((0, 0), |(sent, waiting), load| (sent + load.0, waiting + load.1))
    }

    /// The error of a node, if one is down, and since when it is down or up.
    pub(super) fn state(&self) -> (Option<BackendError>, Instant) {
        let map = self.core.map.load();
        if let Some((error, since)) = &map.unknown {
            return (Some(error.clone()), *since);
        }
        let states = map.links.values().map(|link| link.state());
        // The one that has been down for longest.
        let worst = states.max_by_key(|(error, since)| {
            (error.is_some(), if error.is_some() { since.elapsed() } else { Duration::ZERO })
        });
        worst.unwrap_or_else(|| (None, Instant::now()))
    }
}

impl ClusterCore {
    fn new(plan: Arc<Plan>, seeds: Vec<Address>) -> Self {
        let text = format!("{} is not connected yet", plan.options.target);
        let unknown = Some((BackendError::new(Fault::Unreachable, text), Instant::now()));
        let topology = Topology { ranges: Vec::new() };
        Self {
            plan,
            seeds,
            map: ArcSwap::from_pointee(Map { topology, links: HashMap::new(), unknown }),
            changing: Mutex::new(()),
            stale: Notify::new(),
        }
    }

    fn owner(&self, slot: u16) -> Result<Arc<Link>> {
        let map = self.map.load();
        if let Some((error, _)) = &map.unknown {
            CallCounters::count(&self.plan.counters.rejected);
            return Err(error.clone());
        }
        let link = map.topology.owner(slot).and_then(|address| map.links.get(address));
        link.cloned().ok_or_else(|| {
            self.stale.notify_one();
            CallCounters::count(&self.plan.counters.rejected);
            let text = format!("no node of the {} has slot {slot}", self.plan.options.target);
            BackendError::new(Fault::Unready, text)
        })
    }

    /// The link to a node, created on demand.
    fn link_to(&self, address: &Address) -> Arc<Link> {
        if let Some(link) = self.map.load().links.get(address) {
            return link.clone();
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let map = self.map.load();
        if let Some(link) = map.links.get(address) {
            return link.clone();
        }
        let link = self.new_link(&map.topology, address);
        let mut links = map.links.clone();
        links.insert(address.clone(), link.clone());
        self.map.store(Arc::new(Map { links, ..Map::clone(&map) }));
        link
    }

    fn new_link(&self, topology: &Topology, address: &Address) -> Arc<Link> {
        let (target, probe_key) = self.of_node(topology, address);
        Arc::new(Link::connect_later(self.plan.clone(), target, probe_key))
    }

    /// The address of a node, and a key in one of its slots for probing. A node without slots
    /// redirects the probe, which is an answer.
    fn of_node(&self, topology: &Topology, address: &Address) -> (Target, String) {
        let key = |number| format!("{}{{probe{number}}}", self.plan.options.prefix);
        let is_own = |key: &String| topology.owner(slot::of_key(key.as_bytes())) == Some(address);
        // Enough to hit nearly every slot. A key of another node does no harm.
        let tries = if topology.has(address) { u32::from(slot::SLOTS) * 8 } else { 0 };
        let own = (0..tries).map(key).find(is_own);
        (Target::One(address.clone()), own.unwrap_or_else(|| key(0)))
    }

    /// Refreshes the slot map when it may have changed.
    async fn keep(self: Arc<Self>) {
        let mut pause = self.plan.options.probe_interval;
        loop {
            let is_well = {
                let map = self.map.load();
                map.unknown.is_none() && map.links.values().all(|link| link.state().0.is_none())
            };
            if is_well {
                self.plan.checks.start();
                pause = self.plan.options.probe_interval;
                tokio::select! {
                    () = self.stale.notified() => {}
                    () = sleep(LOOK_AROUND) => {}
                }
            }
            match self.ask().await {
                Ok(topology) => self.adopt(topology),
                Err(error) => self.note_unknown(error),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST.max(self.plan.options.probe_interval));
        }
    }

    /// Asks the nodes that are up, then the seeds.
    async fn ask(&self) -> Result<Topology> {
        let map = self.map.load_full();
        let is_up = |(address, link): &(&Address, &Arc<Link>)| {
            map.topology.has(address) && link.state().0.is_none()
        };
        for (address, link) in map.links.iter().filter(is_up) {
            let mut time_out = self.plan.options.command_time_out;
            if let Ok(answer) = link.call(&question(), false, &mut time_out).await
                && let Ok(topology) = Topology::read(answer, address)
            {
                return Ok(topology);
            }
        }
        self.ask_seeds().await
    }

    async fn ask_seeds(&self) -> Result<Topology> {
        let mut problem = None;
        for seed in &self.seeds {
            match self.ask_seed(seed).await {
                Ok(topology) => return Ok(topology),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        Err(problem.unwrap_or_else(|| {
            BackendError::new(Fault::Misconfigured, "no node of the Cluster is configured")
        }))
    }

    async fn ask_seed(&self, seed: &Address) -> Result<Topology> {
        let credentials = self.plan.credentials.refresh().await;
        let access = credentials.of_server();
        let answer = self.plan.connector.ask(seed, access, &question()).await?;
        Topology::read(answer, seed).map_err(|error| Failure::of(seed, &error.into()).error)
    }

    /// Applies a slot map. Links to nodes without slots are closed, unless slots migrate to them.
    fn adopt(&self, topology: Topology) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let map = self.map.load();
        let link = |address: &&Address| {
            let known = map.links.get(*address).cloned();
            known.unwrap_or_else(|| self.new_link(&topology, address))
        };
        let mut links: HashMap<_, _> =
            topology.masters().into_iter().map(|node| (node.clone(), link(&node))).collect();
        for (address, link) in &map.links {
            if !links.contains_key(address) && link.was_used() && link.state().0.is_none() {
                links.insert(address.clone(), link.clone());
            }
        }
        self.map.store(Arc::new(Map { topology, links, unknown: None }));
    }

    /// Keeps the last map, if any.
    fn note_unknown(&self, error: BackendError) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let map = self.map.load();
        if let Some((before, since)) = &map.unknown {
            let since = *since;
            // Logged once, and again when the error changes.
            if *before != error {
                warn_of_outage(&self.plan, &error);
            }
            self.map.store(Arc::new(Map { unknown: Some((error, since)), ..Map::clone(&map) }));
        }
    }
}

fn question() -> Cmd {
    let mut question = Cmd::new();
    question.arg("CLUSTER").arg("SLOTS");
    question
}
