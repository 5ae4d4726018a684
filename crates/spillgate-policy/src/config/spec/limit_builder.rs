//! Building a limit in a program: what a policy file can say, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use spillgate::{Start, WhenFull};

use super::limit::{OUTAGE, SHARING, START, WHEN_FULL};
use super::{
    Adaptive, At, BanSpec, Concurrent, Cost, Limit, Match, Mode, Override, Settle, WrittenTerms,
    all,
};
use crate::store::{Outage, Sharing};
use crate::{RequestView, Terms};

fn word_of<T: Copy + PartialEq>(words: &[(&str, T)], value: T) -> Option<At<String>> {
    let found = words.iter().find(|(_, known)| *known == value);
    found.map(|(word, _)| At::from((*word).to_owned()))
}

impl Limit {
    /// A limit for every request, counted per caller.
    pub fn new(name: impl Into<String>, quota: impl Into<String>) -> Self {
        Self {
            name: At::from(name.into()),
            matches: Match::default(),
            by_name: None,
            per: None,
            quota: Some(At::from(quota.into())),
            concurrent: None,
            adaptive: None,
            algorithm: None,
            start: None,
            capacity: None,
            when_full: None,
            max_debt: None,
            sharing: None,
            outage: None,
            mode: None,
            cost: None,
            settle: None,
            ban: None,
            overrides: Vec::new(),
        }
    }

    /// A limit on how many requests of a caller are in progress at once, 1 to 1,000,000.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use spillgate_policy::Limit;
    ///
    /// let uploads = Limit::concurrent("uploads", 5)
    ///     .path("/uploads/{*rest}")
    ///     .concurrent_for("caller", "api-key:partner-7", 50)
    ///     .permit_ttl(Duration::from_secs(60));
    /// ```
    pub fn concurrent(name: impl Into<String>, limit: u64) -> Self {
        let concurrent = Concurrent { limit: At::from(limit), ttl: None };
        Self { quota: None, concurrent: Some(concurrent), ..Self::new(name, "") }
    }

    /// Sets how long permits of a concurrency limit live without a sign of life of the node or
    /// program that holds them: 1 second to 1 day. Default: 30 seconds.
    pub fn permit_ttl(mut self, ttl: std::time::Duration) -> Self {
        let text = format!("{} ms", ttl.as_millis());
        self.concurrent.iter_mut().for_each(|it| it.ttl = Some(At::from(text.clone())));
        self
    }

    /// An adaptive limit. One on requests in flight, or a share, is counted for the whole
    /// service; a rate per caller, unless [`per`](Self::per) says otherwise.
    ///
    /// ```
    /// use spillgate_policy::{Adaptive, Limit};
    ///
    /// let service = Limit::adaptive("service", Adaptive::auto(10..=500));
    /// ```
    pub fn adaptive(name: impl Into<String>, adaptive: Adaptive) -> Self {
        Self { quota: None, adaptive: Some(adaptive), ..Self::new(name, "") }
    }

    /// True if the limit is on what the whole service can take.
    pub(crate) fn is_of_service(&self) -> bool {
        self.adaptive.as_ref().is_some_and(|adaptive| !adaptive.has_quotas())
    }

    /// True if all that meet the limit are counted together, so that it needs room for one.
    pub(crate) fn counts_together(&self) -> bool {
        if self.is_of_service() {
            return true;
        }
        match (&self.per, &self.matches.descriptor) {
            (Some(per), _) => per.iter().any(|part| part.value == "global"),
            (None, Some(entries)) => entries.value.values().all(|at| !at.value.ends_with('*')),
            (None, None) => false,
        }
    }

    /// Limits nothing but checks that name the limit ([`LimitCheck`](crate::LimitCheck)): no request
    /// meets it.
    pub fn by_name(mut self) -> Self {
        self.by_name = Some(At::from(true));
        self
    }

    /// Also limits requests to paths of this pattern: `/users/{id}`, `/public/{*rest}`.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.matches.path.push(At::from(pattern.into()));
        self
    }

    /// Limits requests with one of these methods. `GET` stands for `HEAD` too.
    pub fn methods<T: Into<String>>(mut self, methods: impl IntoIterator<Item = T>) -> Self {
        self.matches.method = all(methods);
        self
    }

    /// Also limits requests to this host: `api.example.com`, `*.example.com`.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.matches.host.push(At::from(host.into()));
        self
    }

    /// Limits requests that have this header with this value, or any if it is `*`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.matches.header.insert(name.into(), At::from(value.into()));
        self
    }

    /// Limits descriptors of this domain in place of requests: all of them, unless
    /// [`descriptor`](Self::descriptor) says which.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.matches.domain = Some(At::from(domain.into()));
        self
    }

    /// Limits descriptors with exactly the entries given, this one among them: with this value,
    /// any value if it is `*`, or a prefix if it ends in `*`.
    pub fn descriptor(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let entries = self.matches.descriptor.get_or_insert_default();
        entries.value.insert(key.into(), At::from(value.into()));
        self
    }

    /// Says what is counted apart: `caller`, `ip`, `api-key`, `user`, `header:NAME`,
    /// `path:PARAMETER`, several of them together, or `global`; of descriptors
    /// `descriptor:KEY`, `descriptor` or `global`.
    pub fn per<T: Into<String>>(mut self, parts: impl IntoIterator<Item = T>) -> Self {
        self.per = Some(all(parts));
        self
    }

    /// Sets the algorithm. Default: token bucket.
    pub fn algorithm(mut self, kind: spillgate::AlgorithmKind) -> Self {
        self.algorithm = Some(At::from(kind.to_string()));
        self
    }

    /// Lets new callers begin with nothing to spend.
    pub fn start_empty(mut self) -> Self {
        self.start = word_of(&START, Start::Empty);
        self
    }

    /// Sets the maximum number of active callers.
    pub fn capacity(mut self, callers: u64) -> Self {
        self.capacity = Some(At::from(callers));
        self
    }

    /// Sets what happens to a new caller when the table is full.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = word_of(&WHEN_FULL, when_full);
        self
    }

    /// Sets the maximum debt beyond the burst. Default: what a day refills or ten bursts, whichever
    /// is more.
    pub fn max_debt(mut self, tokens: u64) -> Self {
        self.max_debt = Some(At::from(tokens));
        self
    }

    /// Sets how nodes share the limit, if they share a store.
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.sharing = word_of(&SHARING, sharing);
        self
    }

    /// Sets what happens while a shared store is unreachable.
    pub fn outage(mut self, outage: Outage) -> Self {
        self.outage = word_of(&OUTAGE, outage);
        self
    }

    /// Sets whether the limit denies.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(At::from(mode));
        self
    }

    /// Sets the cost of every request.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(Cost::Constant(At::from(cost)));
        self
    }

    /// Reads the cost from a request header that trusted proxies set: at least 1, and
    /// `default` if it is not there.
    pub fn cost_header(mut self, name: impl Into<String>, default: u64) -> Self {
        let default = Some(At::from(default));
        self.cost = Some(Cost::Header { name: At::from(name.into()), default });
        self
    }

    /// Asks a closure for the cost of a request. A cost of 0 always passes, and is not
    /// counted. The closure must not call the gate.
    pub fn cost_of(
        mut self,
        cost: impl Fn(&RequestView<'_>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.cost = Some(Cost::Closure(Arc::new(cost)));
        self
    }

    /// Corrects the cost when the response is there.
    pub fn settle(mut self, settle: Settle) -> Self {
        self.settle = Some(settle);
        self
    }

    /// Bans callers who offend repeatedly. The limit must be counted per `caller`, `ip`, `api-key`
    /// or `user`: the first of them is banned.
    pub fn ban(mut self, ban: BanSpec) -> Self {
        self.ban = Some(ban);
        self
    }

    /// Gives one caller a quota of its own: `("caller", "api-key:partner-7")`.
    pub fn override_for(
        self,
        part: impl Into<String>,
        value: impl Into<String>,
        quota: impl Into<String>,
    ) -> Self {
        self.override_for_all([(part, value)], quota)
    }

    /// As [`override_for`](Self::override_for), for a limit that is counted per several
    /// parts: gives the value of each.
    pub fn override_for_all<P: Into<String>, V: Into<String>>(
        self,
        parts: impl IntoIterator<Item = (P, V)>,
        quota: impl Into<String>,
    ) -> Self {
        self.override_on_terms(parts, quota, Terms::permanent())
    }

    /// As [`override_for_all`](Self::override_for_all), perhaps up to a time, and with a comment.
    pub fn override_on_terms<P: Into<String>, V: Into<String>>(
        mut self,
        parts: impl IntoIterator<Item = (P, V)>,
        quota: impl Into<String>,
        terms: Terms,
    ) -> Self {
        self.overrides.push(Override {
            quota: Some(At::from(quota.into())),
            concurrent: None,
            parts: parts
                .into_iter()
                .map(|(part, value)| (part.into(), At::from(value.into())))
                .collect(),
            terms: terms.into(),
            at: At::from(()),
        });
        self
    }

    /// Gives one caller of a [concurrency limit](Self::concurrent) a number of its own.
    pub fn concurrent_for(
        mut self,
        part: impl Into<String>,
        value: impl Into<String>,
        limit: u64,
    ) -> Self {
        self.overrides.push(Override {
            quota: None,
            concurrent: Some(At::from(limit)),
            parts: BTreeMap::from([(part.into(), At::from(value.into()))]),
            terms: WrittenTerms::default(),
            at: At::from(()),
        });
        self
    }
}
