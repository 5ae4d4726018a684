//! Servers that do not share are told of each other.

use super::{config, metric};
use crate::common::redis::Redis;
use crate::common::server::{Home, Server, spillgate, until};

const LIMIT: &str = "[[limit]]\nname = 'api'\nquota = '1/h burst 10'\nper = 'ip'\n";
const OTHER_SECRET: [&str; 2] = ["--store-secret", "fedcba9876543210"];

/// How many servers have another secret, and how many another policy, as one of them knows.
fn mismatched(server: &Server) -> [f64; 2] {
    ["secret", "policy"]
        .map(|what| metric(server, &format!("spillgate_store_mismatched_nodes{{what=\"{what}\"}}")))
}

/// The labels of what a server shares by.
fn info(server: &Server) -> String {
    let metrics = server.get("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix("spillgate_store_info"));
    line.unwrap_or_else(|| panic!("{metrics}")).to_owned()
}

/// How many lines of a log have this text.
fn lines(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

/// The moments until which servers with a prefix count as alive, in the order of time.
fn alive_until(redis: &Redis, prefix: &str) -> Vec<f64> {
    const SCORES: &str = "local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES') \
        local scores = {} for place = 2, #all, 2 do scores[#scores + 1] = all[place] end return scores";
    let scores = redis.script(SCORES, &format!("{prefix}nodes:{{edits}}"));
    scores.lines().map(|score| score.parse().unwrap()).collect()
}

/// Waits until every server with a prefix has announced itself twice more, and heard of the others:
/// time for more lines than there should be.
fn until_announced(redis: &Redis, prefix: &str) {
    for _ in 0..2 {
        let last = alive_until(redis, prefix).pop().unwrap();
        until("all have announced themselves", || {
            alive_until(redis, prefix).first().is_some_and(|first| *first > last)
        });
    }
}

/// What a server says that does not start.
fn refusal(home: &Home, flags: &[&str]) -> String {
    let mut serve = spillgate();
    serve.arg("serve").arg("--config").arg(home.path("spillgate.toml")).args(flags);
    let output = serve.args(["--store-on-mismatch", "refuse"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    message
}

#[test]
fn another_secret_is_logged_counted_and_shown_until_the_server_is_gone() {
    let redis = Redis::start();
    let home = Home::new(&config(&redis, LIMIT));
    let (one, other) = (home.start(&[]), home.start(&OTHER_SECRET));
    for server in [&one, &other] {
        until("that it knows", || mismatched(server) == [1.0, 0.0]);
        let ready = server.get("/readyz");
        assert!(ready.contains("\"status\":\"ready\""), "{ready}");
        assert!(ready.contains("\"mismatch\":\"1 other node has another secret"), "{ready}");
        // They share nothing, so each is alone.
        assert!(metric(server, "spillgate_store_nodes") == 1.0);
    }
    assert_ne!(info(&one), info(&other));
    assert!(info(&one).contains("prefix=\"spillgate:\""), "{}", info(&one));
    until_announced(&redis, "spillgate:");
    let log = other.kill();
    assert_eq!(lines(&log, "differ: 1 other node has another secret"), 1, "{log}");
    until("that it is gone", || mismatched(&one) == [0.0, 0.0]);
    assert!(one.get("/readyz").contains("\"mismatch\":null"));
    until_announced(&redis, "spillgate:");
    let log = one.stop();
    assert_eq!(lines(&log, "differ: 1 other node has another secret"), 1, "{log}");
    assert_eq!(lines(&log, "the same secret and policy again"), 1, "{log}");
    assert!(!log.contains("0123456789abcdef"));
}

#[test]
fn another_policy_is_seen_from_a_reload_to_the_next_and_is_shared_with() {
    let redis = Redis::start();
    let home = Home::new(&config(&redis, LIMIT));
    let one = home.start(&[]);
    let second = Home::new(&config(&redis, &format!("# The same.\n{LIMIT}")));
    let other = second.start(&["--store-nodes", "2"]);
    until("that there are two", || metric(&one, "spillgate_store_nodes") == 2.0);
    assert_eq!(mismatched(&one), [0.0, 0.0]);
    assert_eq!(info(&one), info(&other));
    second.write(&config(&redis, &LIMIT.replace("burst 10", "burst 20")));
    other.signal("HUP");
    for server in [&one, &other] {
        until("that it knows", || mismatched(server) == [0.0, 1.0]);
        assert!(server.get("/readyz").contains("\"1 other node has another policy\""));
        assert!(metric(server, "spillgate_store_nodes") == 2.0);
    }
    second.write(&config(&redis, LIMIT));
    other.signal("HUP");
    for server in [&one, &other] {
        until("that they are the same", || mismatched(server) == [0.0, 0.0]);
    }
}

#[test]
fn a_server_that_is_to_refuse_does_not_start_beside_others_that_differ() {
    let redis = Redis::start();
    let home = Home::new(&config(&redis, LIMIT));
    let refuse = ["--store-on-mismatch", "refuse"];
    // Alone it starts; and one that ends is not in the way of the next.
    home.start(&[refuse[0], refuse[1], OTHER_SECRET[0], OTHER_SECRET[1]]).stop();
    let one = home.start(&refuse);
    home.start(&refuse).stop();
    let message = refusal(&home, &OTHER_SECRET);
    assert!(message.contains("refused to join the servers that use the store"), "{message}");
    assert!(message.contains("1 other node has another secret"), "{message}");
    let second = Home::new(&config(&redis, &LIMIT.replace("burst 10", "burst 20")));
    let message = refusal(&second, &[]);
    assert!(message.contains("1 other node has another policy"), "{message}");
    let mut check = spillgate();
    check.arg("check-config").arg(second.path("spillgate.toml")).arg("--connect").args(refuse);
    let output = check.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("another policy"), "{message}");
    // Nobody was told of any of them.
    assert_eq!(mismatched(&one), [0.0, 0.0]);
    assert!(!one.stop().contains("differ"));
}

#[test]
fn another_prefix_is_logged_counted_and_shown_but_not_refused() {
    let redis = Redis::start();
    let home = Home::new(&config(&redis, LIMIT));
    let refusing = ["--store-key-prefix", "other:", "--store-on-mismatch", "refuse"];
    let (one, other) = (home.start(&[]), home.start(&refusing));
    for server in [&one, &other] {
        until("that it knows", || metric(server, "spillgate_store_other_prefixes") == 1.0);
        let ready = server.get("/readyz");
        assert!(ready.contains("nodes with another prefix share nothing with this one"), "{ready}");
        assert_eq!(mismatched(server), [0.0, 0.0]);
    }
    until_announced(&redis, "spillgate:");
    until_announced(&redis, "other:");
    assert_eq!(lines(&other.kill(), "differ: nodes with another prefix"), 1);
    until("that it is gone", || metric(&one, "spillgate_store_other_prefixes") == 0.0);
}
