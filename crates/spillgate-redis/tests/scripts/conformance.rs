//! The suite that every store must pass, through the scripts.

use std::cell::RefCell;
use std::rc::Rc;

use spillgate::algorithm::{Algorithm, AnyAlgorithm, Word};
use spillgate::{AlgorithmKind, Decision, Timestamp};
use spillgate_redis::backend::{Entry, Found, Op};
use spillgate_redis::{Name, Terms};
use spillgate_testing::conformance::{histories, recorded};
use spillgate_testing::{Limit, Observed, Subject};

use crate::common::Server;
use crate::scripts::runner::ScriptRunner;

struct InEngine {
    client: Rc<RefCell<ScriptRunner>>,
    algorithm: AnyAlgorithm,
    terms: Terms,
}

impl InEngine {
    fn new(client: &Rc<RefCell<ScriptRunner>>, limit: &Limit) -> Self {
        client.borrow_mut().flush();
        Self {
            client: Rc::clone(client),
            algorithm: limit.algorithm().unwrap(),
            terms: Terms::new(limit.kind, limit.quota),
        }
    }

    /// The word before, and whether it passed.
    fn run(&mut self, key: &str, op: Op, now: Timestamp) -> (Word, bool) {
        let mut name = [0; 16];
        name[..key.len()].copy_from_slice(key.as_bytes());
        let fresh = self.algorithm.fresh(Timestamp::ZERO);
        let (terms, algorithm) = (self.terms, self.algorithm);
        let entry = Entry { name: Name::from_bytes(name), terms, algorithm, fresh, op };
        let reply = self.client.borrow_mut().run(&[entry], Some(now));
        assert_eq!(reply.now, now);
        match &reply.answers[0] {
            Found::Passed(word) => (*word, true),
            Found::Denied(word) => (*word, false),
            found @ (Found::Other(_) | Found::Gone) => panic!("nobody wrote {found:?}"),
        }
    }
}

impl Subject for InEngine {
    fn check(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        let (word, passed) = self.run(key, Op::Spend { cost, is_shadow: false }, now);
        let (decision, _) = Decision::of(self.algorithm, word, now, cost);
        assert_eq!(decision.is_allowed(), passed, "{decision:?}");
        decision.into()
    }

    fn peek(&mut self, key: &str, cost: u64, now: Timestamp) -> Observed {
        let (word, _) = self.run(key, Op::Look, now);
        Decision::peek(self.algorithm, word, now, cost).into()
    }

    fn debit(&mut self, key: &str, amount: u64, now: Timestamp) {
        let most = self.algorithm.most_owed(None);
        self.run(key, Op::Debit { amount, most }, now);
    }

    fn refund(&mut self, key: &str, amount: u64, now: Timestamp) {
        self.run(key, Op::GiveBack { amount, spent: None }, now);
    }

    fn reset(&mut self, key: &str, now: Timestamp) {
        self.run(key, Op::Reset, now);
    }
}

fn conforms(server: Server) {
    let client = Rc::new(RefCell::new(ScriptRunner::new(server)));
    for kind in AlgorithmKind::ALL {
        recorded(kind, |limit| InEngine::new(&client, limit));
        histories(kind, 40, |limit| InEngine::new(&client, limit));
    }
}

#[test]
fn redis_answers_as_recorded_and_as_the_model() {
    conforms(Server::redis());
}

#[test]
fn valkey_answers_as_recorded_and_as_the_model() {
    conforms(Server::valkey());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_oldest_redis_answers_as_recorded_and_as_the_model() {
    conforms(Server::redis_6_2());
}
