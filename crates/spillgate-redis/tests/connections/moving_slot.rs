//! What is done with everything that a slot has while it moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spillgate_policy::store::{HoldSpec, LimitSpec, PermitId, Spend, Store};
use spillgate_policy::{Gate, Key, LimitCheck, Limits, Policy};
use spillgate_redis::backend::{Backend, Exchange, Fault, Lasts, SealedEdit};
use spillgate_redis::client::Client;
use spillgate_redis::{Name, RedisLimits, RedisStore, Settings};
use tokio::time::Instant;

use crate::common::{Cluster, FakeNode, MovingSlot};
use crate::connections::asking::{entry, options};
use crate::connections::start::use_all;

const TTL: Duration = Duration::from_secs(60);

/// In the slot of one hash tag.
const PREFIX: &str = "{app}:";

const LIMITS: [&str; 3] = ["a", "b", "shadow"];

/// What Redis does not decide is an error.
const POLICY: &str = "\
    [[limit]]\nname = 'a'\nby-name = true\nper = 'user'\nquota = '10/h'\noutage = 'closed'\n\
    [[limit]]\nname = 'b'\nby-name = true\nper = 'user'\nquota = '2/h'\noutage = 'closed'\n\
    [[limit]]\nname = 'shadow'\nby-name = true\nper = 'user'\nquota = '1/h'\noutage = 'closed'\n\
    mode = 'shadow'\n";

/// Makes calls about callers that Redis knows and others, at every stage of a move.
struct Caller {
    client: Client,
    gate: Gate<RedisStore>,
    permits: RedisStore,
    limits: RedisLimits,
    held: Vec<PermitId>,
    published: Vec<SealedEdit>,
    seen: u64,
    users: Vec<String>,
}

impl Caller {
    async fn connect(cluster: &Cluster) -> Self {
        let connect = async || {
            let patient = options(&cluster.url()).command_time_out(Duration::from_secs(1));
            Client::connect(patient.prefix(PREFIX)).await.unwrap()
        };
        let settings = Settings::default().nodes(1.try_into().unwrap());
        let store = RedisStore::new(connect().await, &settings).unwrap();
        let gate = Gate::with_store(Policy::from_toml(POLICY).unwrap(), store).unwrap();
        let permits = RedisStore::new(connect().await, &settings).unwrap();
        let spec = LimitSpec::new("jobs", "burst 2".parse().unwrap()).holding(HoldSpec::new(TTL));
        let limits = permits.open(&[spec]).unwrap();
        let (client, held, published) = (connect().await, Vec::new(), Vec::new());
        Self { client, gate, permits, limits, held, published, seen: 0, users: Vec::new() }
    }

    /// Everybody who called before calls again, and so do new ones.
    async fn call(&mut self, stage: &str) {
        self.acquire_and_release(stage).await;
        self.publish_and_read(stage).await;
        self.users.push(format!("{stage}-new"));
        for user in &self.users {
            self.decide(user).await.unwrap_or_else(|why| panic!("{stage}, {user}: {why}"));
        }
        for name in [1, 2].map(|byte| Name::from_bytes([byte; 16])) {
            self.client.born(name).await.unwrap();
            self.client.forget(name).await.unwrap();
        }
    }

    async fn acquire_and_release(&mut self, stage: &str) {
        if let Some(id) = self.held.pop() {
            assert!(self.permits.renew(&self.limits, id, TTL).await.unwrap(), "{stage}");
            assert!(self.permits.release(&self.limits, id).await.unwrap(), "{stage}");
        }
        for place in 0..3 {
            let key = format!("{stage}-{place}");
            let spend = Spend::new(0, Key::from_bytes(key.as_bytes()), 2);
            let acquired = self.permits.acquire(&self.limits, &spend, TTL).await;
            let (_, id) = acquired.unwrap_or_else(|why| panic!("{stage}, {place}: {why}"));
            self.held.push(id.unwrap());
            let (_, none) = self.permits.acquire(&self.limits, &spend, TTL).await.unwrap();
            assert_eq!(none, None, "{stage}: two are held already");
        }
    }

    async fn publish_and_read(&mut self, stage: &str) {
        let name = Name::from_bytes([self.published.len() as u8; 16]);
        let edit = SealedEdit { name, lasts: Lasts::Forever, sealed: stage.into() };
        assert!(self.client.publish(std::slice::from_ref(&edit)).await.unwrap());
        let page = self.client.edits_since(self.seen).await.unwrap();
        assert_eq!(page.edits, std::slice::from_ref(&edit), "{stage}");
        (self.seen, _) = (page.version, self.published.push(edit));
        assert_eq!(self.client.edits_since(0).await.unwrap().edits, self.published, "{stage}");
    }

    /// Decides until the second limit denies: then nothing is spent of the first.
    async fn decide(&self, user: &str) -> Result<(), spillgate_policy::Error> {
        let values = [user];
        let checks = LIMITS.map(|limit| LimitCheck { limit, values: &values, cost: 1 });
        let mut spent = 10 - self.gate.peek_limit("a", &values, 1).await?.remaining();
        for _ in 0..2 {
            let outcome = self.gate.decide(&Limits(&checks)).await?;
            assert_eq!(outcome.is_allowed(), spent < 2, "{user} has spent {spent}");
            // The last one is not asked once another has denied.
            assert_eq!(outcome.limits().count(), if outcome.is_allowed() { 3 } else { 2 });
            spent += u64::from(outcome.is_allowed());
        }
        assert_eq!(self.gate.peek_limit("a", &values, 1).await?.remaining(), 10 - spent);
        Ok(())
    }
}

#[tokio::test]
async fn while_a_slot_moves_callers_that_are_new_and_known_are_served() {
    let cluster = Cluster::start(false);
    let mut caller = Caller::connect(&cluster).await;
    let slot = cluster.masters[0].command("CLUSTER KEYSLOT app").parse().unwrap();
    let moving = MovingSlot::begin(&cluster, slot);
    caller.call("begun without a key").await;
    moving.move_keys(1);
    caller.call("one key has moved").await;
    while moving.move_keys(2) > 0 {
        caller.call("more keys have moved").await;
        if caller.users.len() > 5 {
            break;
        }
    }
    let (left, moved) = moving.end();
    assert!(left == 0 && moved > 10, "{left} and {moved} keys");
    caller.call("the slot has moved").await;
    let health = caller.client.health();
    assert_eq!((health.outage, health.outages), (None, 0));
}

/// Keys of one caller are then in several slots; no call is on two of them.
#[tokio::test]
async fn a_prefix_with_a_brace_of_its_own_may_spread_keys_over_a_cluster() {
    let cluster = Cluster::start(false);
    for prefix in ["a{b:", "{}c:", "}{d:", "{app}:"] {
        let options = options(&cluster.url()).prefix(prefix);
        use_all(&Client::connect(options).await.unwrap()).await;
        // Other prefixes in use are told.
        cluster.masters.iter().for_each(|node| drop(node.command("FLUSHALL")));
    }
}

fn exchange() -> Exchange {
    Exchange { name: entry(1).name, old: None, new: None, expires: None }
}

/// A node whose slots are being moved, so that it has so many calls made again.
async fn refusing(calls: &Arc<AtomicUsize>) -> FakeNode {
    let left = calls.clone();
    FakeNode::start(Duration::ZERO, move |words| {
        let one_less = |left: usize| left.checked_sub(1);
        let is_refused = words[0] == "EVALSHA"
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok();
        is_refused
            .then(|| "-TRYAGAIN Multiple keys request during rehashing of slot\r\n".to_owned())
    })
    .await
}

#[tokio::test]
async fn a_call_is_made_again_for_as_long_as_it_has_time() {
    let left = Arc::default();
    let node = refusing(&left).await;
    let time = Duration::from_millis(600);
    let client = Client::connect(options(&node.url()).command_time_out(time)).await.unwrap();
    let before = node.count("EVALSHA");
    left.store(30, Ordering::SeqCst);
    assert!(client.exchange(&exchange()).await.unwrap());
    assert_eq!(node.count("EVALSHA") - before, 31);

    left.store(usize::MAX, Ordering::SeqCst);
    let (began, before) = (Instant::now(), node.count("EVALSHA"));
    let error = client.exchange(&exchange()).await.unwrap_err();
    assert_eq!(error.fault(), Fault::Unready, "{error}");
    assert!(!error.is_unanswered(), "it was never made");
    assert!(began.elapsed() >= time / 2, "after {:?}", began.elapsed());
    assert!(node.count("EVALSHA") - before > 30);
}

#[tokio::test]
async fn a_call_on_several_keys_of_a_moving_slot_is_told_at_once() {
    let left = Arc::default();
    let node = refusing(&left).await;
    let client = Client::connect(options(&node.url())).await.unwrap();
    let before = node.count("EVALSHA");
    left.store(usize::MAX, Ordering::SeqCst);
    let error = client.run(&[entry(1), entry(2)]).await.unwrap_err();
    let calls = node.count("EVALSHA") - before;
    assert_eq!((error.fault(), calls), (Fault::Scattered, 1), "{error}");
    assert!(!error.is_unanswered(), "it was not made");
}
