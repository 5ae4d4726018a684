//! Sentinels that do not agree, or are wrong.

use std::time::Duration;

use spillgate_redis::client::Client;
use spillgate_testing::Port;
use tokio::time::sleep;

use crate::common::{FakeSentinel, Server};
use crate::connections::asking::{ask, options, scripts_run};

/// For several looks at where the master is.
const WHILE: Duration = Duration::from_millis(500);

/// A master, one that was it before, and Sentinels that name one of the two.
struct VoteScene {
    master: Server,
    old: Server,
    sentinels: Vec<FakeSentinel>,
    /// Where nobody listens.
    dead: Port,
}

impl VoteScene {
    async fn new(sentinels: usize) -> Self {
        let (master, old) = (Server::redis(), Server::redis());
        let mut scene = Self { master, old, sentinels: Vec::new(), dead: Port::reserve() };
        for _ in 0..sentinels {
            scene.sentinels.push(FakeSentinel::start(scene.master.port, true).await);
        }
        scene
    }

    /// Connects by these Sentinels.
    async fn connect(&self, ports: &[u16]) -> Client {
        let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let url = format!("redis+sentinel://{}/main", hosts.join(","));
        let often = options(&url).check_interval(Duration::from_millis(20));
        Client::connect(often.command_time_out(Duration::from_secs(5))).await.unwrap()
    }

    fn ports<const N: usize>(&self) -> [u16; N] {
        std::array::from_fn(|place| self.sentinels[place].port())
    }

    /// Asks for a while, and sees that the master was asked and nobody else.
    async fn stays(&self, client: &Client) {
        for _ in 0..10 {
            ask(client, 1).await.unwrap();
            sleep(WHILE / 10).await;
        }
        assert_eq!(scripts_run(&self.old), 0);
        assert!(scripts_run(&self.master) >= 10);
        assert_eq!((client.health().outages, client.health().connects), (0, 1));
    }
}

#[tokio::test]
async fn sentinels_are_asked_again_and_again_over_the_same_connection() {
    let scene = VoteScene::new(1).await;
    let client = scene.connect(&scene.ports::<1>()).await;
    scene.stays(&client).await;
    // One of them is for events.
    assert_eq!(scene.sentinels[0].connections(), 2);
}

#[tokio::test]
async fn one_sentinel_is_not_believed_against_two() {
    let scene = VoteScene::new(3).await;
    let [lying, second, third] = scene.ports();
    scene.sentinels[0].set_master(scene.old.port);
    for order in [[lying, second, third], [second, third, lying]] {
        let client = scene.connect(&order).await;
        scene.stays(&client).await;
        // Nor if it announces what is not so.
        scene.sentinels[0].publish("+switch-master", "main 127.0.0.1 1 127.0.0.1 2").await;
        scene.stays(&client).await;
    }
}

#[tokio::test]
async fn a_sentinel_that_is_dead_has_no_say() {
    let scene = VoteScene::new(2).await;
    let [first, second] = scene.ports();
    let client = scene.connect(&[scene.dead.number(), first, second]).await;
    scene.stays(&client).await;
    // Those who are left do not agree: it stays where it is.
    scene.sentinels[0].set_master(scene.old.port);
    scene.stays(&client).await;
    // Those who are left agree.
    scene.sentinels[1].set_master(scene.old.port);
    while scripts_run(&scene.old) < 3 {
        ask(&client, 1).await.unwrap();
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((client.health().outages, client.health().connects), (0, 2));
}

#[tokio::test]
async fn of_two_that_are_named_as_often_one_that_can_be_used_is() {
    let mut scene = VoteScene::new(2).await;
    let ports: [u16; 2] = scene.ports();
    scene.old.kill();
    scene.sentinels[0].set_master(scene.old.port);
    let client = scene.connect(&ports).await;
    ask(&client, 1).await.unwrap();
    assert!(scripts_run(&scene.master) > 0);
}

#[tokio::test]
async fn a_master_that_works_is_kept_until_another_one_does() {
    let scene = VoteScene::new(1).await;
    let client = scene.connect(&scene.ports::<1>()).await;
    scene.sentinels[0].set_master(scene.dead.number());
    scene.sentinels[0].publish("+switch-master", "main 127.0.0.1 1 127.0.0.1 2").await;
    for _ in 0..5 {
        scene.stays(&client).await;
    }
}
