//! How much memory a decision under way takes.

use spillgate_policy::store::{Spend, Store};
use spillgate_redis::client::{Client, Options};
use spillgate_redis::{RedisStore, Settings};

/// It is allocated for each call: large blocks cost an allocator more than small ones, and moving
/// them costs as well.
#[tokio::test]
async fn a_decision_under_way_takes_little_room() {
    let redis = Client::connect_later(Options::new("redis://127.0.0.1:1").unwrap()).unwrap();
    let store = RedisStore::new(redis, &Settings::default()).unwrap();
    let limits = store.open(&[]).unwrap();
    let mut charges: Vec<Spend> = Vec::new();
    let size = size_of_val(&store.decide(&limits, &mut charges));
    assert!(size <= 4096, "{size}");
}
