use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use spillgate::algorithm::{Algorithm, TokenBucket, Word};
use spillgate::{Decision, Timestamp};

use super::ramp::Ramp;
use super::replica::Replica;
use crate::headers::{AnnouncedLimit, RateLimitInfo, Unit};
use crate::retry::RetryBudget;
use crate::status::LimitKey;

/// What is known of a far side. All of it is under one lock.
#[derive(Debug)]
pub(super) struct State {
    /// The quota that the program gave, and what is spent of it.
    own: Option<(TokenBucket, Word)>,
    pub(super) ramp: Ramp,
    pub(super) replicas: HashMap<LimitKey, Replica>,
    pub(super) routes: HashMap<Arc<str>, Route>,
    pub(super) in_flight: u64,
    pub(super) waiting: usize,
    pub(super) blocked_until: Timestamp,
    /// When the last refusal came that was not one of a wave before it.
    refused_at: Timestamp,
    /// Refusals in a row.
    refusals: u32,
    pub(super) retries: RetryBudget,
}

/// Requests that meet the same limits.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// First come, first served.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    limits: Vec<LimitKey>,
    in_flight: u64,
    used_at: Timestamp,
}

/// When a request may be sent.
pub(super) enum Ready {
    Now(Sent),
    /// Not before this time, unless a response changes it.
    At(Timestamp),
    /// When another one has ended.
    Later,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Timestamp,
    /// The program's own quota after it.
    own: Option<Word>,
}

/// Hard limits, so that a far side cannot choose how much memory a client takes.
const MAX_REPLICAS: usize = 64;
const MAX_ROUTES: usize = 256;

impl State {
    pub(super) fn new(own: Option<TokenBucket>, retries: RetryBudget, now: Timestamp) -> Self {
        Self {
            // A quota is full at the start, whatever the clock.
            own: own.map(|bucket| (bucket, bucket.fresh(Timestamp::ZERO))),
            ramp: Ramp::new(now),
            replicas: HashMap::new(),
            routes: HashMap::new(),
            in_flight: 0,
            waiting: 0,
            blocked_until: Timestamp::ZERO,
            refused_at: Timestamp::ZERO,
            refusals: 0,
            retries,
        }
    }

    /// The route of this name. Beyond so many, the least recent is forgotten, if that changes nothing;
    /// otherwise all others are one.
    pub(super) fn route(&mut self, name: &Arc<str>, now: Timestamp) -> Arc<str> {
        let is_full = self.routes.len() >= MAX_ROUTES && !self.routes.contains_key(name);
        let is_full = is_full && !self.forget_route(now);
        let name = if is_full { Arc::from("") } else { Arc::clone(name) };
        self.routes.entry(Arc::clone(&name)).or_default().used_at = now;
        name
    }

    /// Forgets the least recent route that has no request and no limit, or if there is none, no request.
    fn forget_route(&mut self, now: Timestamp) -> bool {
        let is_idle = |it: &Route| it.in_flight == 0 && Arc::strong_count(&it.turn) == 1;
        let is_known = |it: &Route| {
            let mut replicas = it.limits.iter().filter_map(|key| self.replicas.get(key));
            replicas.any(|replica| !replica.is_stale(now))
        };
        let idle = self.routes.iter().filter(|(_, it)| is_idle(it));
        let oldest = idle.min_by_key(|(_, it)| (is_known(it), it.used_at));
        let oldest = oldest.map(|(name, _)| Arc::clone(name));
        oldest.is_some_and(|name| self.routes.remove(&name).is_some())
    }

    /// Sends a request if all that is known allows it.
    pub(super) fn try_send(&mut self, route: &Arc<str>, now: Timestamp) -> Ready {
        let limits = self.routes.get(route).map_or(&[][..], |route| &route.limits);
        let replicas = limits.iter().filter_map(|key| self.replicas.get(key));
        let ready =
            replicas.map(|it| it.ready_at(now)).max().unwrap_or(now).max(self.blocked_until);
        if ready > now {
            return Ready::At(ready);
        }
        if self.in_flight >= self.ramp.limit(now) {
            return Ready::Later;
        }
        if let Some((bucket, word)) = &mut self.own {
            let (decision, spent) = Decision::of(*bucket, *word, now, 1);
            match decision.retry_after() {
                Some(Duration::ZERO) => *word = spent.unwrap_or(*word),
                Some(time) => return Ready::At(now + time),
                None => return Ready::At(Timestamp::MAX),
            }
        }
        self.each_replica(route, |replica| replica.send(now));
        self.count(route, |in_flight| in_flight + 1);
        let own = self.own.map(|(_, word)| word);
        Ready::Now(Sent { at: now, own })
    }

    /// Undoes a send: the request did not leave this program.
    pub(super) fn unsend(&mut self, route: &Arc<str>, sent: Sent, now: Timestamp) {
        if let (Some((bucket, word)), Some(spent)) = (&mut self.own, sent.own) {
            *word = bucket.refund_call(*word, now, 1, spent);
        }
        self.miss(route, now);
    }

    /// The request did not reach the far side. The attempt stays within the own quota, or nothing would
    /// slow down attempts to connect.
    pub(super) fn miss(&mut self, route: &Arc<str>, now: Timestamp) {
        self.each_replica(route, |replica| replica.unsend(now));
        self.count(route, |in_flight| in_flight.saturating_sub(1));
    }

    /// A request has ended. Without a response nobody knows whether it was counted, so it stays spent.
    pub(super) fn end(&mut self, route: &Arc<str>, is_counted: bool) {
        self.each_replica(route, |replica| replica.end(is_counted));
        self.count(route, |in_flight| in_flight.saturating_sub(1));
    }

    fn count(&mut self, route: &Arc<str>, change: impl Fn(u64) -> u64) {
        self.in_flight = change(self.in_flight);
        if let Some(route) = self.routes.get_mut(route) {
            route.in_flight = change(route.in_flight);
        }
    }

    fn each_replica(&mut self, route: &Arc<str>, act: impl Fn(&mut Replica)) {
        let limits = self.routes.get(route).map_or(&[][..], |route| &route.limits);
        for key in limits {
            self.replicas.get_mut(key).into_iter().for_each(&act);
        }
    }

    /// Follows the limits that the response to a request announces.
    pub(super) fn learn(
        &mut self,
        route: &Arc<str>,
        sent_at: Timestamp,
        limits: &[AnnouncedLimit],
        now: Timestamp,
        longest: Duration,
    ) {
        let is_concurrent = |it: &&AnnouncedLimit| it.unit == Unit::ConcurrentRequests;
        let caps = limits.iter().filter(is_concurrent);
        if let Some(cap) = caps.map(|it| it.limit.or(it.remaining).unwrap_or(1)).min() {
            self.ramp.cap(cap, now + longest);
        }
        let mut seen = Vec::with_capacity(limits.len());
        for announced in limits.iter().filter(|it| !is_concurrent(it)) {
            let key = key_of(announced, route);
            self.attach(route, announced, &key, now);
            if let Some(replica) = self.replicas.get_mut(&key) {
                replica.learn(announced, sent_at, now, longest);
            }
            seen.push(key);
        }
        self.forget_stale(route, &seen, now);
    }

    /// Makes a limit one of a route's.
    fn attach(
        &mut self,
        name: &Arc<str>,
        announced: &AnnouncedLimit,
        key: &LimitKey,
        now: Timestamp,
    ) {
        let is_known = self.replicas.contains_key(key);
        if !is_known {
            if announced.remaining.is_none() {
                return;
            }
            let Ok(replica) = Replica::new(announced) else { return };
            self.make_room(now);
            self.replicas.insert(key.clone(), replica);
        }
        let (Some(route), Some(replica)) = (self.routes.get_mut(name), self.replicas.get_mut(key))
        else {
            return;
        };
        if !route.limits.contains(key) {
            // What was in flight already is spent on it, too.
            replica.join(route.in_flight);
            route.limits.push(key.clone());
        }
    }

    /// Forgets a limit if there are too many: one whose reset has passed, or else the least recent.
    fn make_room(&mut self, now: Timestamp) {
        if self.replicas.len() < MAX_REPLICAS {
            return;
        }
        let age = |it: &Replica| (!it.is_stale(now), it.learnt_at());
        let oldest = self.replicas.iter().min_by_key(|(_, it)| age(it));
        let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
        self.replicas.remove(&oldest);
        self.routes.values_mut().for_each(|route| route.limits.retain(|key| *key != oldest));
    }

    /// Forgets limits of a route whose reset has passed and that a new response does not mention.
    fn forget_stale(&mut self, route: &Arc<str>, seen: &[LimitKey], now: Timestamp) {
        let Some(route) = self.routes.get_mut(route) else { return };
        let (replicas, in_flight) = (&mut self.replicas, route.in_flight);
        route.limits.retain(|key| {
            let Some(replica) = replicas.get_mut(key) else { return false };
            let is_kept = seen.contains(key) || !replica.is_stale(now);
            if !is_kept {
                // They end without it.
                replica.leave(in_flight);
            }
            is_kept
        });
        let routes = &self.routes;
        let is_used = |key: &LimitKey| routes.values().any(|route| route.limits.contains(key));
        replicas.retain(|key, replica| !replica.is_stale(now) || is_used(key));
    }

    /// The far side refused a request that was sent at `sent_at`: nobody sends for a while. Returns how
    /// long, if it is news.
    pub(super) fn refuse(
        &mut self,
        route: &Arc<str>,
        info: &RateLimitInfo,
        sent_at: Timestamp,
        now: Timestamp,
        wait: impl Fn(u32) -> Duration,
    ) -> Option<Duration> {
        // Those that were in flight when another one was refused are the same wave.
        let is_news = sent_at >= self.refused_at;
        if is_news {
            self.refusals = self.refusals.saturating_add(1);
            self.refused_at = now;
        }
        let wait = wait(self.refusals);
        let exhausted = info.limits.iter().filter(|it| it.remaining == Some(0));
        let exhausted: Vec<_> = exhausted.map(|it| key_of(it, route)).collect();
        let is_named = exhausted.iter().any(|key| key.name.is_some());
        let is_partial = is_named && !info.is_global;
        let mut blocks_any = false;
        for key in &exhausted {
            let Some(replica) = self.replicas.get_mut(key) else { continue };
            if is_news {
                replica.refuse();
            }
            if is_partial {
                replica.block(now + wait);
                blocks_any = true;
            }
        }
        // There is none of a concurrency limit: then the refusal is the host's.
        if !blocks_any {
            self.blocked_until = self.blocked_until.max(now + wait);
        }
        match (is_news, blocks_any) {
            (true, false) => self.ramp.refused(self.in_flight + 1, now),
            // How much the limit allows, its replica knows.
            (true, true) => self.ramp.restart(now),
            (false, _) => {}
        }
        is_news.then_some(wait)
    }

    /// The far side answered a request that was sent at `sent_at`, and did not refuse it.
    pub(super) fn accept(&mut self, sent_at: Timestamp, now: Timestamp) {
        if sent_at >= self.refused_at {
            self.refusals = 0;
        }
        self.ramp.answered(self.in_flight + 1, now);
    }

    /// The far side failed, or could not be reached.
    pub(super) fn fail(&mut self, now: Timestamp) {
        self.ramp.failed(self.in_flight + 1, now);
    }

    /// True if forgetting all of it would change nothing.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        let is_spent = self.own.is_some_and(|(bucket, word)| bucket.spent(word, now) > 0);
        let is_known = self.replicas.values().any(|replica| !replica.is_stale(now));
        self.in_flight == 0
            && self.waiting == 0
            && now >= self.blocked_until
            && !is_spent
            && !is_known
    }
}

/// What has no name is another limit on each route.
fn key_of(announced: &AnnouncedLimit, route: &Arc<str>) -> LimitKey {
    let AnnouncedLimit { name, dialect, unit, .. } = announced;
    let is_routed = name.is_none() && !route.is_empty();
    let route = is_routed.then(|| Box::from(&**route));
    LimitKey { name: name.clone(), route, dialect: *dialect, unit: *unit }
}
