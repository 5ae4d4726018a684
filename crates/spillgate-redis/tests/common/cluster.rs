use std::time::Duration;

use super::Server;

/// Three masters that share the slots, and perhaps a replica of the first.
pub(crate) struct Cluster {
    pub(crate) masters: Vec<Server>,
    pub(crate) replica: Option<Server>,
}

const ARGUMENTS: [&str; 6] = [
    "--cluster-enabled",
    "yes",
    "--cluster-node-timeout",
    "500",
    "--repl-diskless-sync-delay",
    "0",
];

impl Cluster {
    /// Starts the nodes, and waits until all of them know of all.
    pub(crate) fn start(has_replica: bool) -> Self {
        let masters: Vec<_> = (0..3).map(|_| Server::redis_with(&ARGUMENTS)).collect();
        for (place, node) in masters.iter().enumerate() {
            let (first, last) =
                (place * 5461, if place == 2 { 16383 } else { place * 5461 + 5460 });
            node.command(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
            node.command(&format!("CLUSTER SET-CONFIG-EPOCH {}", place + 1));
        }
        let replica = has_replica.then(|| Server::redis_with(&ARGUMENTS));
        for node in masters.iter().skip(1).chain(&replica) {
            masters[0].command(&format!("CLUSTER MEET 127.0.0.1 {} {}", node.port, node.bus()));
        }
        let cluster = Self { masters, replica };
        let size = cluster.nodes().count();
        let is_met = |node: &Server| {
            let info = node.command("CLUSTER INFO");
            info.contains("cluster_state:ok")
                && info.contains(&format!("cluster_known_nodes:{size}"))
        };
        eventually("the nodes meet", || cluster.nodes().all(is_met));
        if let Some(replica) = &cluster.replica {
            let id = cluster.masters[0].command("CLUSTER MYID");
            replica.command(&format!("CLUSTER REPLICATE {id}"));
            let is_linked =
                || replica.command("INFO replication").contains("master_link_status:up");
            eventually("the replica follows", is_linked);
            let address = format!(":{}@", replica.port);
            let is_known = |node: &Server| {
                let nodes = node.command("CLUSTER NODES");
                nodes.lines().any(|line| line.contains(&address) && line.contains("slave"))
            };
            eventually("all know the replica", || cluster.nodes().all(is_known));
        }
        cluster
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> =
            self.masters.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    fn nodes(&self) -> impl Iterator<Item = &Server> {
        self.masters.iter().chain(&self.replica)
    }
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    // For servers of others to form. Once, Sentinels had not within 20 s; why is not known.
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("in 60 s it did not come to pass that {what}");
}

/// A slot on its way from one node to the next one.
pub(crate) struct MovingSlot<'c> {
    cluster: &'c Cluster,
    from: &'c Server,
    to: &'c Server,
    slot: u16,
}

impl<'c> MovingSlot<'c> {
    /// From now on the slot is on its way; its keys stay where they are.
    pub(crate) fn begin(cluster: &'c Cluster, slot: u16) -> Self {
        let place = usize::from(slot / 5461).min(2);
        let (from, to) = (&cluster.masters[place], &cluster.masters[(place + 1) % 3]);
        to.command(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", from.command("CLUSTER MYID")));
        from.command(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", to.command("CLUSTER MYID")));
        Self { cluster, from, to, slot }
    }

    /// Moves so many of its keys, and tells how many.
    pub(crate) fn move_keys(&self, count: usize) -> usize {
        let mut keys = redis::cmd("CLUSTER");
        keys.arg("GETKEYSINSLOT").arg(self.slot).arg(count);
        let keys: Vec<Vec<u8>> = keys.query(&mut self.from.admin()).unwrap();
        for key in &keys {
            let mut migrate = redis::cmd("MIGRATE");
            migrate.arg("127.0.0.1").arg(self.to.port).arg(&key[..]).arg(0).arg(5000);
            migrate.exec(&mut self.from.admin()).unwrap();
        }
        keys.len()
    }

    /// Ends the move, and tells how many keys of the slot both nodes have.
    pub(crate) fn end(self) -> (usize, usize) {
        while self.move_keys(100) > 0 {}
        let id = self.to.command("CLUSTER MYID");
        let others = self.cluster.masters.iter().filter(|node| node.port != self.to.port);
        for node in [self.to].into_iter().chain(others) {
            node.command(&format!("CLUSTER SETSLOT {} NODE {id}", self.slot));
        }
        let keys = |node: &Server| {
            node.command(&format!("CLUSTER COUNTKEYSINSLOT {}", self.slot)).parse().unwrap()
        };
        (keys(self.from), keys(self.to))
    }
}
