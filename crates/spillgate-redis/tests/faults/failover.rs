//! What a failover forgives: what the old master had not passed on.

use std::time::Duration;

use tokio::time::sleep;

use crate::common::{Sentinels, real_time};
use crate::faults::node::HOT;
use crate::faults::scene::{Scene, has_connections};

/// For how long the old master answers without a replica to tell.
const LAG: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_forgives_no_more_than_what_was_not_replicated() {
    let mut sentinels = Sentinels::start();
    let mut scene = Scene::new("failover", &sentinels.url()).await;
    let (old, new) = (sentinels.master.port, sentinels.replica.port);
    let (mut parted, mut died) = (0, 0);
    let failover = async || {
        // What was sent to it already it reads when it goes on, but no more.
        sentinels.replica.pause();
        parted = real_time();
        sentinels.master.command("CLIENT KILL TYPE replica");
        sleep(LAG).await;
        sentinels.master.kill();
        died = real_time();
        sentinels.replica.resume();
        while sentinels.named_master().is_none_or(|port| port == old) {
            sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(sentinels.named_master(), Some(new));
    };
    let round = scene.round(failover).await;
    round.was_noticed();
    has_connections(&sentinels.replica, 1).await;
    let admitted = round.calls.admitted_hot();
    let unknown = admitted.iter().filter(|now| (parted..=died).contains(*now)).count();
    let forgiven = round.calls.forgiven();
    eprintln!("failover: {forgiven} of {unknown} tokens that were not replicated were forgiven");
    assert!(
        forgiven <= HOT.burst.min(unknown as u64),
        "{forgiven} forgiven, {unknown} not replicated"
    );
}
