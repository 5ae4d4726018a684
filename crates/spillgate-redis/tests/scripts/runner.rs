//! Calls of scripts over a plain connection.

use std::time::Duration;

use redis::{Cmd, Connection, Pipeline};
use spillgate::Timestamp;
use spillgate_redis::backend::{Entry, Reply};
use spillgate_redis::script;
use spillgate_redis::{Name, State};

use crate::common::Server;

/// So much longer do states live here than what is spent, since time is what a test says.
pub(crate) const MARGIN: Duration = Duration::from_secs(24 * 3600);

/// A connection to a server, which ends with it.
pub(crate) struct ScriptRunner {
    pub(crate) connection: Connection,
    run: String,
    keys: script::Keys,
    _server: Server,
}

impl ScriptRunner {
    pub(crate) fn new(server: Server) -> Self {
        let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        let run = redis::cmd("SCRIPT").arg("LOAD").arg(script::RUN).query(&mut connection);
        Self { connection, run: run.unwrap(), keys: script::Keys::default(), _server: server }
    }

    pub(crate) fn key(&self, name: &Name) -> script::Key {
        self.keys.state(name)
    }

    /// The call that decides, at the server's own time unless it is told.
    pub(crate) fn command(&self, entries: &[Entry], now: Option<Timestamp>) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.run).arg(entries.len());
        for entry in entries {
            command.arg(&self.key(&entry.name)[..]);
        }
        for entry in entries {
            command.arg(&script::encode_entry(entry).unwrap()[..]);
        }
        if let Some(now) = now {
            command.arg(&script::override_clock(now, MARGIN)[..]);
        }
        command
    }

    pub(crate) fn run(&mut self, entries: &[Entry], now: Option<Timestamp>) -> Reply {
        let command = self.command(entries, now);
        let bytes: Vec<u8> = command.query(&mut self.connection).unwrap();
        script::reply(&bytes, entries.len()).unwrap()
    }

    /// What is kept of a caller, and for how many milliseconds: -1 if for ever.
    pub(crate) fn ask_kept(&self, pipeline: &mut Pipeline, name: &Name) {
        let key = self.key(name);
        pipeline.cmd("GET").arg(&key[..]).cmd("PTTL").arg(&key[..]);
    }

    pub(crate) fn state(&mut self, name: &Name) -> Option<State> {
        let mut command = redis::cmd("GET");
        command.arg(&self.key(name)[..]);
        let bytes: Option<Vec<u8>> = command.query(&mut self.connection).unwrap();
        bytes.map(|bytes| State::from_bytes(&bytes).unwrap())
    }

    pub(crate) fn set(&mut self, name: &Name, value: &[u8]) {
        let mut command = redis::cmd("SET");
        command.arg(&self.key(name)[..]).arg(value).exec(&mut self.connection).unwrap();
    }

    /// How many milliseconds a state is still kept: -1 for ever, -2 if it is not there.
    pub(crate) fn lifetime(&mut self, name: &Name) -> i64 {
        let mut command = redis::cmd("PTTL");
        command.arg(&self.key(name)[..]).query(&mut self.connection).unwrap()
    }

    /// The server's time.
    pub(crate) fn time(&mut self) -> Timestamp {
        let time = redis::cmd("TIME").query(&mut self.connection);
        let (secs, micros): (u64, u64) = time.unwrap();
        Timestamp::from_nanos((secs * 1_000_000 + micros) * 1_000)
    }

    pub(crate) fn flush(&mut self) {
        redis::cmd("FLUSHDB").exec(&mut self.connection).unwrap();
    }
}
