use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, Value, from_redis_value};
use spillgate::Timestamp;
use tokio::time::Instant;

use super::checks::TimeReading;
use super::cluster::slot;
use super::{Client, Route};
use crate::Name;
use crate::backend::{
    Alive, Announcement, Backend, BackendError, EditPage, Entry, Exchange, Fault, PermitCall,
    PermitReply, Reply, Result, SealedEdit, Swap, Swapped,
};
use crate::script::{self, Key, Script};

impl Backend for Client {
    async fn run(&self, entries: &[Entry]) -> Result<Reply> {
        let mut call = Script::Run.call(entries.len());
        for entry in entries {
            call.arg(self.keys.state(&entry.name).as_slice());
        }
        for entry in entries {
            call.arg(script::encode_entry(entry)?.as_slice());
        }
        #[cfg(any(test, feature = "testing"))]
        if let Some(clock) = &*self.clock.load() {
            call.arg(clock.as_slice());
        }
        let slot = entries.first().map_or(0, |entry| self.slot(&entry.name));
        let answer = self.call(slot, entries.len(), &call).await.and_then(bytes);
        let reply = answer.and_then(|answer| script::reply(&answer, entries.len()));
        reply.inspect_err(|error| {
            if error.is_unreadable() {
                let keys = entries.iter().map(|entry| self.keys.state(&entry.name));
                self.unreadable.note(keys, error);
            }
        })
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<bool> {
        let key = self.keys.state(&exchange.name);
        let call = Script::Exchange.call_about(&key, &script::exchange(exchange));
        read(self.call_about(&key, &call).await?)
    }

    fn slot(&self, name: &Name) -> u16 {
        match &self.route {
            // Without building the key for each call.
            Route::One(_) => 0,
            Route::Cluster(_) => slot::of_key(&self.keys.state(name)),
        }
    }

    async fn announce(&self, announcement: &Announcement) -> Result<Alive> {
        let key = self.keys.nodes();
        let call = Script::Announce.call_about(&key, &script::announce(announcement));
        let answer = bytes(self.call_about(&key, &call).await?)?;
        let mut alive = script::alive(&answer, announcement.lists)?;
        if announcement.lists && announcement.joins.is_some() {
            alive.other_prefixes = self.other_prefixes(announcement.lifetime).await;
        }
        Ok(alive)
    }

    async fn forget(&self, name: Name) -> Result<()> {
        for key in [self.keys.state(&name), self.keys.born(&name)] {
            let mut call = Cmd::new();
            call.arg("DEL").arg(key.as_slice());
            read::<()>(self.call_about(&key, &call).await?)?;
        }
        Ok(())
    }

    async fn born(&self, name: Name) -> Result<Timestamp> {
        let key = self.keys.born(&name);
        let call = Script::Born.call_about(&key, &[]);
        script::born(&bytes(self.call_about(&key, &call).await?)?)
    }

    async fn deposit(&self, name: Name, kept: &[u8], lifetime: Duration) -> Result<()> {
        let key = self.keys.deposit(&name);
        let mut call = Cmd::new();
        call.arg("SET").arg(key.as_slice()).arg(kept);
        call.arg("PX").arg(script::millis(lifetime).as_slice());
        read(self.call_about(&key, &call).await?)
    }

    async fn withdraw(&self, name: Name) -> Result<Option<Vec<u8>>> {
        let key = self.keys.deposit(&name);
        let mut call = Cmd::new();
        call.arg("GETDEL").arg(key.as_slice());
        read(self.call_about(&key, &call).await?)
    }

    async fn publish(&self, edits: &[SealedEdit]) -> Result<bool> {
        let key = self.keys.edits();
        let call = Script::Publish.call_about(&key, &script::publish(edits));
        read(self.call_about_new(&key, &call).await?)
    }

    async fn edits_since(&self, version: u64) -> Result<EditPage> {
        let version = script::Argument::from_slice(version.to_string().as_bytes());
        let key = self.keys.edits();
        let call = Script::EditsSince.call_about(&key, &[version]);
        let answer = self.call_about_new(&key, &call).await?;
        script::edits(&bytes(answer)?)
    }

    async fn pulse(
        &self,
        announcement: &Announcement,
        version: u64,
    ) -> (Result<Alive>, Result<EditPage>) {
        let pulse = match self.keys_of_a_pulse() {
            Some(keys) => self.pulse_at_once(keys, announcement, version).await,
            None => Err(BackendError::new(Fault::Scattered, "the prefix is a hash tag")),
        };
        match pulse {
            Ok((alive, page)) => (Ok(alive), Ok(page)),
            // One of the two keys may be on its way to another node, or unusable.
            Err(why) if matches!(why.fault(), Fault::Scattered | Fault::Corrupt) => {
                (self.announce(announcement).await, self.edits_since(version).await)
            }
            Err(why) => (Err(why.clone()), Err(why)),
        }
    }

    async fn permits(&self, call: &PermitCall) -> Result<PermitReply> {
        let key = self.keys.permits(&call.name);
        let call = Script::Permits.call_about(&key, &script::permits(call));
        let answer = self.call_about_new(&key, &call).await?;
        script::permit_reply(&bytes(answer)?)
    }

    async fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Result<Swapped> {
        let key = self.keys.strikes(&name);
        let call = Script::Swap.call_about(&key, &script::swap(swap));
        script::swapped(&bytes(self.call_about(&key, &call).await?)?)
    }
}

impl Client {
    /// The keys of nodes and edits, if they are in one slot: a brace in the prefix may place them
    /// elsewhere.
    fn keys_of_a_pulse(&self) -> Option<[Key; 2]> {
        let keys = [self.keys.nodes(), self.keys.edits()];
        let [nodes, edits] = keys.each_ref().map(|key| self.slot_of_key(key));
        (nodes == edits).then_some(keys)
    }

    async fn pulse_at_once(
        &self,
        [nodes, edits]: [Key; 2],
        announcement: &Announcement,
        version: u64,
    ) -> Result<(Alive, EditPage)> {
        let mut call = Script::Pulse.call(2);
        call.arg(nodes.as_slice()).arg(edits.as_slice());
        for argument in script::announce(announcement) {
            call.arg(argument.as_slice());
        }
        call.arg(version);
        if announcement.lists && !self.hides_prefixes.load(Ordering::Relaxed) {
            for argument in script::prefixes(&self.plan.options.prefix, announcement.lifetime) {
                call.arg(argument.as_slice());
            }
        }
        let sent = Instant::now();
        let answer = self.call(self.slot_of_key(&edits), 2, &call).await?;
        let received = Instant::now();
        let (alive, page, others, seconds, micros): (Value, Value, i64, u64, u32) = read(answer)?;
        let time = Duration::from_secs(seconds) + Duration::from_micros(micros.into());
        self.note_time(TimeReading { sent, received, time });
        let mut alive = script::alive(&bytes(alive)?, announcement.lists)?;
        alive.other_prefixes = self.note_prefixes(others);
        Ok((alive, script::edits(&bytes(page)?)?))
    }

    /// Notes the time of the only server: another call need not read it. Which server of a Cluster has
    /// answered is not known here.
    fn note_time(&self, reading: TimeReading) {
        if let Route::One(link) = &self.route {
            link.note_time(reading);
        }
    }

    /// The number of other prefixes. If the ACL forbids it, it is not tried again.
    fn note_prefixes(&self, others: i64) -> u32 {
        if others < 0 {
            self.hides_prefixes.store(true, Ordering::Relaxed);
        }
        u32::try_from(others).unwrap_or(0)
    }

    /// Other prefixes in use on this server.
    async fn other_prefixes(&self, lifetime: Duration) -> u32 {
        if self.hides_prefixes.load(Ordering::Relaxed) {
            return 0;
        }
        let key = self.keys.nodes();
        let arguments = script::prefixes(&self.plan.options.prefix, lifetime);
        let call = Script::Prefixes.call_about(&key, &arguments);
        let Ok(answer) = self.call_about(&key, &call).await else { return 0 };
        self.note_prefixes(read(answer).unwrap_or(-1))
    }

    /// Makes a call on one key.
    async fn call_about(&self, key: &[u8], call: &Cmd) -> Result<Value> {
        self.call(self.slot_of_key(key), 1, call).await
    }

    /// The same on a key under which earlier versions kept another type.
    async fn call_about_new(&self, key: &[u8], call: &Cmd) -> Result<Value> {
        self.call_about(key, call).await.map_err(|error| match error.fault() {
            Fault::Corrupt => written_before(key),
            _ => error,
        })
    }

    /// Everything is in one slot, except in a Cluster.
    fn slot_of_key(&self, key: &[u8]) -> u16 {
        match &self.route {
            Route::One(_) => 0,
            Route::Cluster(_) => slot::of_key(key),
        }
    }
}

/// What to do about permits or edits as earlier versions have kept them.
fn written_before(key: &[u8]) -> BackendError {
    let key = String::from_utf8_lossy(key);
    let text = format!(
        "{key} in Redis was written by an earlier version, or by another program: stop the servers \
         of that version, then delete the key (redis-cli DEL '{key}')"
    );
    BackendError::new(Fault::Corrupt, text)
}

/// The bytes of a reply.
fn bytes(answer: Value) -> Result<Vec<u8>> {
    match answer {
        Value::BulkString(bytes) => Ok(bytes),
        other => read(other),
    }
}

fn read<T: FromRedisValue>(answer: Value) -> Result<T> {
    from_redis_value(answer).map_err(|error| {
        let text = format!("unexpected reply from Redis: {error}");
        BackendError::new(Fault::Nonsense, text)
    })
}
