use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, Value, from_redis_value};
use smallvec::SmallVec;
use spillgate::Timestamp;

use super::cluster::slot;
use super::{Client, Route};
use crate::Name;
use crate::backend::{
    Alive, Announcement, Backend, BackendError, EditPage, Entry, Exchange, Fault, PermitCall,
    PermitReply, Reply, Result, SealedEdit, Swap, Swapped,
};
use crate::script::{self, Script};

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
        let answer = self.call(slot, &call).await.and_then(bytes);
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
        read(self.call(self.slot(&exchange.name), &call).await?)
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
        let answer = bytes(self.call(self.slot_of_key(&key), &call).await?)?;
        let mut alive = script::alive(&answer, announcement.lists)?;
        if announcement.lists && announcement.joins.is_some() {
            alive.other_prefixes = self.other_prefixes(announcement.lifetime).await;
        }
        Ok(alive)
    }

    async fn forget(&self, name: Name) -> Result<()> {
        // In one slot, since they share a hash tag.
        let (state, born) = (self.keys.state(&name), self.keys.born(&name));
        let mut call = Cmd::new();
        call.arg("DEL").arg(state.as_slice()).arg(born.as_slice());
        read(self.call(self.slot_of_key(&state), &call).await?)
    }

    async fn born(&self, name: Name) -> Result<Timestamp> {
        let key = self.keys.born(&name);
        let call = Script::Born.call_about(&key, &[]);
        script::born(&bytes(self.call(self.slot_of_key(&key), &call).await?)?)
    }

    async fn deposit(&self, name: Name, kept: &[u8], lifetime: Duration) -> Result<()> {
        let key = self.keys.deposit(&name);
        let mut call = Cmd::new();
        call.arg("SET").arg(key.as_slice()).arg(kept);
        call.arg("PX").arg(script::millis(lifetime).as_slice());
        read(self.call(self.slot_of_key(&key), &call).await?)
    }

    async fn withdraw(&self, name: Name) -> Result<Option<Vec<u8>>> {
        let key = self.keys.deposit(&name);
        let mut call = Cmd::new();
        call.arg("GETDEL").arg(key.as_slice());
        read(self.call(self.slot_of_key(&key), &call).await?)
    }

    async fn publish(&self, edits: &[SealedEdit]) -> Result<bool> {
        read(self.call_about_edits(Script::Publish, &script::publish(edits)).await?)
    }

    async fn edits_since(&self, version: u64) -> Result<EditPage> {
        let version = script::Argument::from_slice(version.to_string().as_bytes());
        script::edits(&bytes(self.call_about_edits(Script::EditsSince, &[version]).await?)?)
    }

    async fn permits(&self, call: &PermitCall) -> Result<PermitReply> {
        let keys = self.keys.permits(&call.name);
        let script = Script::Permits.call_on(&[&keys[0], &keys[1]], &script::permits(call));
        script::permit_reply(&bytes(self.call(self.slot_of_key(&keys[0]), &script).await?)?)
    }

    async fn swap_strikes(&self, name: Name, swap: Option<&Swap>) -> Result<Swapped> {
        let key = self.keys.strikes(&name);
        let call = Script::Swap.call_about(&key, &script::swap(swap));
        script::swapped(&bytes(self.call(self.slot_of_key(&key), &call).await?)?)
    }
}

impl Client {
    /// Other prefixes in use on this server. If the ACL forbids it, it is not tried again.
    async fn other_prefixes(&self, lifetime: Duration) -> u32 {
        if self.hides_prefixes.load(Ordering::Relaxed) {
            return 0;
        }
        let key = self.keys.nodes();
        let arguments = script::prefixes(&self.plan.options.prefix, lifetime);
        let call = Script::Prefixes.call_about(&key, &arguments);
        let Ok(answer) = self.call(self.slot_of_key(&key), &call).await else { return 0 };
        let others = read::<i64>(answer).unwrap_or(-1);
        self.hides_prefixes.store(others < 0, Ordering::Relaxed);
        u32::try_from(others).unwrap_or(0)
    }

    async fn call_about_edits(
        &self,
        script: Script,
        arguments: &[script::Argument],
    ) -> Result<Value> {
        let keys = self.keys.edits();
        let call = script.call_on(&keys.each_ref().map(SmallVec::as_slice), arguments);
        self.call(self.slot_of_key(&keys[0]), &call).await
    }

    /// Everything is in one slot, except in a Cluster.
    fn slot_of_key(&self, key: &[u8]) -> u16 {
        match &self.route {
            Route::One(_) => 0,
            Route::Cluster(_) => slot::of_key(key),
        }
    }
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
