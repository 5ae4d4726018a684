use std::sync::Arc;

use spillgate::ManualClock;
use spillgate_enforce::Enforcer;
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy};

use super::{Talk, endpoint};
use crate::protocol::resp::{Endpoint, Password};

#[tokio::test]
async fn commands_are_answered_as_by_redis() {
    let mut talk = Talk::with(&Arc::new(endpoint().0));
    for (request, reply) in [
        ("PING", "+PONG\r\n"),
        ("ping hello", "$5\r\nhello\r\n"),
        ("ECHO \"a\\x00b\"", "$3\r\na\0b\r\n"),
        ("CL.THROTTLE k 15 30 60", "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("SELECT 1", "-ERR DB index is out of range\r\n"),
        ("SELECT x", "-ERR value is not an integer or out of range\r\n"),
        ("CLIENT ID", ":1\r\n"),
        ("CLIENT GETNAME", "$-1\r\n"),
        ("CLIENT SETNAME web-1", "+OK\r\n"),
        ("CLIENT GETNAME", "$5\r\nweb-1\r\n"),
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n"),
        ("CLIENT NO-EVICT on", "+OK\r\n"),
        ("CLIENT NO-TOUCH off", "+OK\r\n"),
        ("CLIENT NO-TOUCH perhaps", "-ERR syntax error\r\n"),
        ("CLIENT INFO", "$53\r\nid=1 addr= name=web-1 age=0 db=0 user=default resp=2\n\r\n"),
        ("CLIENT KILL x", "-ERR unknown subcommand 'KILL' of CLIENT\r\n"),
        ("CLIENT", "-ERR wrong number of arguments for 'client' command\r\n"),
        ("CLIENT ID x", "-ERR wrong number of arguments for 'client|id' command\r\n"),
        ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("CONFIG GET app* nothing", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"),
        ("CONFIG GET nothing", "*0\r\n"),
        ("CONFIG SET save x", "-ERR unknown subcommand 'SET' of CONFIG\r\n"),
        ("COMMAND COUNT", ":25\r\n"),
        ("COMMAND INFO nothing", "*1\r\n$-1\r\n"),
        (
            "COMMAND INFO CL.THROTTLE",
            "*1\r\n*10\r\n$11\r\ncl.throttle\r\n:-5\r\n*2\r\n+write\r\n+fast\r\n\
             :1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
        ),
        ("INFO replication", "$48\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n"),
        ("INFO nothing", "$0\r\n\r\n"),
        ("RESET", "+RESET\r\n"),
        ("CLIENT GETNAME", "$-1\r\n"),
        ("CL.THROTTLE k", "-ERR wrong number of arguments for 'cl.throttle' command\r\n"),
        ("GETX a 'b c'", "-ERR unknown command 'GETX', with args beginning with: 'a' 'b c' \r\n"),
        ("\"a\\r\\nb\"", "-ERR unknown command 'a  b', with args beginning with: \r\n"),
        ("AUTH x y", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"),
    ] {
        talk.ask(request, reply).await;
    }
    talk.send("QUIT\r\nPING\r\n").await;
    assert_eq!(talk.rest().await, "+OK\r\n", "nothing follows a QUIT");
}

#[tokio::test]
async fn names_that_would_spoil_a_list_are_refused() {
    let mut talk = Talk::with(&Arc::new(endpoint().0));
    let special = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
    talk.ask("CLIENT SETNAME 'a b'", special).await;
    talk.ask("CLIENT SETNAME \"a\\n\"", special).await;
    talk.ask("HELLO 3 SETNAME 'a b'", special).await;
    let long = format!("CLIENT SETNAME {}", "x".repeat(257));
    talk.ask(&long, "-ERR Client names cannot be longer than 256 bytes.\r\n").await;
    talk.ask("CLIENT GETNAME", "$-1\r\n").await;
}

#[tokio::test]
async fn a_limit_of_the_policy_is_asked_by_its_parts() {
    let mut talk = Talk::with(&Arc::new(endpoint().0));
    for (request, reply) in [
        ("SG.CHECK api alice", "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1\r\n"),
        ("SG.CHECK api bob 3", "*5\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:3\r\n"),
        ("SG.CHECK api carol 0", "*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n"),
        ("SG.CHECK api carol 6", "*5\r\n:1\r\n:5\r\n:5\r\n:-1\r\n:0\r\n"),
        ("SG.CHECK pair PARTS 2 alice web", "*5\r\n:1\r\n:5\r\n:0\r\n:1\r\n:5\r\n"),
        ("SG.CHECK pair parts 2 alice web 5", "*5\r\n:1\r\n:5\r\n:0\r\n:5\r\n:5\r\n"),
        ("SG.CHECK trial PARTS 2 alice web", "*5\r\n:0\r\n:5\r\n:0\r\n:-1\r\n:5\r\n"),
        ("SG.CHECK total PARTS 0", "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1\r\n"),
        ("SG.CHECK total PARTS 0 2", "*5\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:3\r\n"),
        ("SG.CHECK api PARTS 1 PARTS", "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1\r\n"),
    ] {
        talk.ask(request, reply).await;
    }
    let unknown = "-ERR there is no limit \"nothing\"; ";
    talk.send("SG.CHECK nothing alice\r\n").await;
    talk.expect(unknown).await;
    talk.skip_line().await;
    let arity = "-ERR wrong number of arguments for 'sg.check' command\r\n";
    for request in [
        "SG.CHECK api",
        "SG.CHECK api alice 1 2",
        "SG.CHECK api PARTS",
        "SG.CHECK api PARTS 2 alice",
        "SG.CHECK api PARTS 1 alice 1 1",
        "SG.CHECK api PARTS 9223372036854775807 alice",
    ] {
        talk.ask(request, arity).await;
    }
    let number = "must be an integer from 0 to 9223372036854775807, not";
    talk.ask("SG.CHECK api alice -1", &format!("-ERR cost {number} '-1'\r\n")).await;
    let parts = format!("-ERR the number of parts {number} 'x'\r\n");
    talk.ask("SG.CHECK api PARTS x alice", &parts).await;
    let binary = "-ERR key must be UTF-8, not '\u{fffd}'\r\n";
    talk.ask("SG.CHECK api \"\\xff\"", binary).await;
}

#[tokio::test]
async fn the_newer_protocol_is_spoken_when_asked_for() {
    let mut talk = Talk::with(&Arc::new(endpoint().0));
    let hello = |map: &str, number: u8| {
        format!(
            "{map}\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n\
             $5\r\nproto\r\n:{number}\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
             $4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
        )
    };
    talk.ask("HELLO", &hello("*14", 2)).await;
    talk.ask("HELLO 3 SETNAME web", &hello("%7", 3)).await;
    talk.ask("CLIENT GETNAME", "$3\r\nweb\r\n").await;
    talk.ask("CONFIG GET save", "%1\r\n$4\r\nsave\r\n$0\r\n\r\n").await;
    talk.ask("CL.THROTTLE k 15 30 60", "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n").await;
    talk.ask("HELLO 4", "-NOPROTO unsupported protocol version\r\n").await;
    let not_a_number = "-ERR Protocol version is not an integer or out of range\r\n";
    talk.ask("HELLO x", not_a_number).await;
    talk.ask("HELLO 2 AUTH x", "-ERR Syntax error in HELLO option 'AUTH'\r\n").await;
    talk.ask("CLIENT SETNAME \"\"", "+OK\r\n").await;
    talk.ask("CLIENT GETNAME", "_\r\n").await;
    talk.ask("HELLO 2", &hello("*14", 2)).await;
    talk.ask("CLIENT GETNAME", "$-1\r\n").await;
}

#[tokio::test]
async fn nothing_is_done_for_whoever_has_not_given_the_password() {
    let endpoint = Arc::new(endpoint().0.password(Password::new("secret")));
    let mut talk = Talk::with(&endpoint);
    let denied = "-NOAUTH Authentication required.\r\n";
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    for request in ["PING", "CL.THROTTLE k 15 30 60", "INFO", "COMMAND", "SG.CHECK api x"] {
        talk.ask(request, denied).await;
    }
    let hello = "-NOAUTH HELLO must be called with the client already authenticated, otherwise \
                 the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the \
                 client and select the RESP protocol version at the same time\r\n";
    talk.ask("HELLO", hello).await;
    talk.ask("HELLO 3", hello).await;
    for request in ["AUTH wrong", "AUTH default wrong", "AUTH other secret"] {
        talk.ask(request, wrong).await;
    }
    talk.ask("HELLO 3 AUTH default wrong", wrong).await;
    talk.ask("PING", denied).await;
    talk.ask("AUTH secret", "+OK\r\n").await;
    talk.ask("PING", "+PONG\r\n").await;
    talk.ask("CL.THROTTLE k 15 30 60 0", "*5\r\n:0\r\n:16\r\n:16\r\n:-1\r\n:0\r\n").await;
    talk.ask("RESET", "+RESET\r\n").await;
    talk.ask("PING", denied).await;
    talk.send("HELLO 3 AUTH default secret\r\n").await;
    talk.expect("%7\r\n").await;
    assert_eq!(endpoint.stats().counts().allowed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_may_give_the_password_first() {
    let endpoint = Arc::new(endpoint().0.password(Password::new("secret")));
    let mut talk = Talk::with(&endpoint);
    talk.ask("PING\r\nAUTH secret\r\nPING", "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n")
        .await;
    // Without it, requests are short.
    let mut talk = Talk::with(&endpoint);
    talk.send("*11\r\n").await;
    assert_eq!(talk.rest().await, "-ERR Protocol error: invalid multibulk length\r\n");
}

#[tokio::test]
async fn a_transaction_is_answered_at_once_or_not_at_all() {
    let mut talk = Talk::with(&Arc::new(endpoint().0));
    for (request, reply) in [
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("DISCARD", "-ERR DISCARD without MULTI\r\n"),
        ("MULTI", "+OK\r\n"),
        ("EXEC", "*0\r\n"),
        ("MULTI", "+OK\r\n"),
        ("CL.THROTTLE k 0 1 60", "+QUEUED\r\n"),
        ("CL.THROTTLE k 0 1 60", "+QUEUED\r\n"),
        ("CL.THROTTLE k x 1 60", "+QUEUED\r\n"),
        ("SG.CHECK api alice:web", "+QUEUED\r\n"),
        ("MULTI", "-ERR MULTI calls can not be nested\r\n"),
        ("PING", "+QUEUED\r\n"),
        (
            "EXEC",
            "*5\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n\
             -ERR max_burst must be an integer from 0 to 9223372036854775807, not 'x'\r\n\
             *5\r\n:1\r\n:5\r\n:0\r\n:1\r\n:5\r\n+PONG\r\n",
        ),
        // Whatever is refused before spoils the whole.
        ("MULTI", "+OK\r\n"),
        ("CL.THROTTLE other 0 1 60", "+QUEUED\r\n"),
        ("CL.THROTTLE other", "-ERR wrong number of arguments for 'cl.throttle' command\r\n"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"),
        ("CL.THROTTLE other 0 1 60 0", "*5\r\n:0\r\n:1\r\n:1\r\n:-1\r\n:0\r\n"),
        ("MULTI", "+OK\r\n"),
        ("INFO", "-ERR only CL.THROTTLE, SG.CHECK, PING and ECHO can be in a transaction\r\n"),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"),
        ("MULTI", "+OK\r\n"),
        ("CL.THROTTLE other 0 1 60", "+QUEUED\r\n"),
        ("DISCARD", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("RESET", "+RESET\r\n"),
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("CL.THROTTLE other 0 1 60 0", "*5\r\n:0\r\n:1\r\n:1\r\n:-1\r\n:0\r\n"),
    ] {
        talk.ask(request, reply).await;
    }
}

#[tokio::test]
async fn a_transaction_that_is_too_long_is_refused_and_the_connection_goes_on() {
    let mut talk = Talk::with(&Arc::new(endpoint().0));
    talk.ask("MULTI", "+OK\r\n").await;
    for _ in 0..4096 {
        talk.ask("PING", "+QUEUED\r\n").await;
    }
    talk.ask(
        "PING",
        "-ERR the transaction is too long; send at most 4096 commands and 512 KiB, or a pipeline \
         without a transaction\r\n",
    )
    .await;
    talk.ask("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n").await;
    talk.ask("PING", "+PONG\r\n").await;
}

#[tokio::test]
async fn a_password_that_nobody_has_to_give_can_be_given() {
    let endpoint = Arc::new(endpoint().0);
    endpoint.set_password(Password::new("secret"), false);
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    let mut talk = Talk::with(&endpoint);
    talk.ask("PING", "+PONG\r\n").await;
    for request in ["AUTH wrong", "AUTH default wrong", "AUTH other secret"] {
        talk.ask(request, wrong).await;
    }
    talk.ask("HELLO 3 AUTH default wrong", wrong).await;
    // What the client could do before, it still can; and in the protocol that it spoke.
    talk.ask("PING", "+PONG\r\n").await;
    talk.ask("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n").await;
    talk.ask("AUTH secret", "+OK\r\n").await;
    talk.ask("AUTH default secret", "+OK\r\n").await;
    talk.ask("AUTH wrong", wrong).await;
    talk.ask("RESET", "+RESET\r\n").await;
    talk.ask("PING", "+PONG\r\n").await;
}

#[tokio::test]
async fn a_banned_caller_is_limited_for_the_rest_of_its_ban() {
    let ban = "[[limit]]\nname = 'api'\nquota = '1/h'\nban = { strikes = 1, duration = '90s' }";
    let gate =
        Gate::with_store(Policy::from_toml(ban).unwrap(), Memory::new(ManualClock::default()));
    let endpoint = Endpoint::new(Arc::new(Enforcer::new(gate.unwrap())));
    let mut talk = Talk::with(&Arc::new(endpoint));
    for reply in [
        "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3600\r\n",
        "*5\r\n:1\r\n:1\r\n:0\r\n:3600\r\n:3600\r\n",
        "*5\r\n:1\r\n:0\r\n:0\r\n:90\r\n:0\r\n",
    ] {
        talk.ask("SG.CHECK api user:1", reply).await;
    }
}
