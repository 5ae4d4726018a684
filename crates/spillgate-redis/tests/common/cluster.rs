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
