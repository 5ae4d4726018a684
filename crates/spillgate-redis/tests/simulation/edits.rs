//! Edits that nodes publish and read over a network in which everything goes wrong, and calls that are
//! dropped in the middle: in the end all nodes know what Redis has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spillgate_policy::store::{Edit, Store};
use spillgate_redis::{RedisStore, Secret, Settings};
use spillgate_testing::seeds;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::simulation::link::Link;
use crate::simulation::plan::Network;
use crate::simulation::random::Random;
use crate::simulation::world::{NodeClock, World};

const LASTS: Duration = Duration::from_secs(4);

/// What a node knows: values by key, and the version up to which that is so.
#[derive(Debug, Default)]
struct Known {
    version: u64,
    values: BTreeMap<String, String>,
}

struct EditNode {
    store: RedisStore<Link>,
    known: Mutex<Known>,
}

impl EditNode {
    fn new(world: &Arc<World>, network: Network) -> Self {
        let secret = Secret::new("the secret of the cluster").unwrap();
        let clock = NodeClock { began: Instant::now(), pace: 1_000_000 };
        let settings = Settings::default().nodes(2.try_into().unwrap()).secret(secret).clock(clock);
        let store = RedisStore::new(Link::new(world, network, None), &settings).unwrap();
        Self { store, known: Mutex::default() }
    }

    /// Reads what is new. What is not answered changes nothing.
    async fn follow(&self) -> bool {
        let version = self.known.lock().unwrap().version;
        let Ok(log) = self.store.edits_since(version).await else { return false };
        let mut known = self.known.lock().unwrap();
        known.version = log.version;
        for Edit { key, value, .. } in log.edits {
            match value {
                Some(value) => known.values.insert(key, value),
                None => known.values.remove(&key),
            };
        }
        true
    }
}

/// Publishes changes of one key, each again until it is answered or given up.
async fn publish_again_and_again(node: Arc<EditNode>, place: usize, world: Arc<World>) {
    for number in 0.. {
        if world.elapsed() >= LASTS {
            return;
        }
        let (pause, patience, is_undone, tries) = world.draw(|random| {
            let patience = random.one_of(&[0, 5, 20, 1000, 1000]);
            let patience = random.millis(0, patience);
            (random.millis(0, 200), patience, random.percent(20), random.between(1, 3))
        });
        sleep(pause).await;
        let value = (!is_undone).then(|| number.to_string());
        // Two nodes write each key.
        let edit = Edit::new(format!("key {}", place / 2), value, None);
        for _ in 0..tries {
            let publishing = node.store.publish(std::slice::from_ref(&edit));
            if let Ok(Ok(())) = timeout(patience, publishing).await {
                break;
            }
        }
    }
}

async fn follow_again_and_again(node: Arc<EditNode>, world: Arc<World>) {
    while world.elapsed() < LASTS {
        sleep(world.draw(|random| random.millis(10, 500))).await;
        let patience = world.draw(|random| random.one_of(&[2, 20, 1000]));
        let _ = timeout(Duration::from_millis(patience), node.follow()).await;
    }
}

async fn run(seed: u64) -> Result<usize, String> {
    let mut random = Random::new(seed);
    let network = Network {
        fastest: 0,
        slowest: random.between(1, 20),
        lost: random.one_of(&[0, 5, 20]),
        late: random.one_of(&[0, 10]),
    };
    let world = Arc::new(World::new(seed));
    let mut tasks = JoinSet::new();
    let mut nodes = Vec::new();
    for place in 0..random.between(2, 5) as usize {
        let node = Arc::new(EditNode::new(&world, network));
        tasks.spawn(publish_again_and_again(Arc::clone(&node), place, Arc::clone(&world)));
        tasks.spawn(follow_again_and_again(Arc::clone(&node), Arc::clone(&world)));
        nodes.push(node);
    }
    while tasks.join_next().await.is_some() {}
    // What is still on its way arrives.
    sleep(Duration::from_secs(1)).await;
    let calm = Network { lost: 0, late: 0, ..network };
    let fresh = EditNode::new(&world, calm);
    assert!(fresh.follow().await);
    let fresh = fresh.known.into_inner().unwrap();
    for (place, node) in nodes.iter().enumerate() {
        while !node.follow().await {}
        let known = node.known.lock().unwrap();
        if (known.version, &known.values) != (fresh.version, &fresh.values) {
            return Err(format!("seed {seed}: node {place} knows {known:?}, and Redis {fresh:?}"));
        }
    }
    Ok(fresh.values.len())
}

#[test]
fn nodes_know_in_the_end_what_redis_has_whatever_was_lost() {
    let mut values = 0;
    for seed in seeds(60) {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        values += runtime.block_on(run(seed)).unwrap();
    }
    assert!(values > 60, "{values} values in all");
}
