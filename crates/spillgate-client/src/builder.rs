use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use spillgate::algorithm::TokenBucket;
use spillgate::{Clock, Error, Quota};

use crate::layer::Shared;
use crate::pace::{Pacer, PartsText, Settings};
use crate::retry::RetryRules;
use crate::{ClientLayer, CloneBody};

/// Builds a [`ClientLayer`].
///
/// ```
/// use std::time::Duration;
/// use spillgate_client::ClientLayer;
///
/// let layer = ClientLayer::builder()
///     .quota("100/s burst 20")
///     .max_wait(Duration::from_secs(5))
///     .deadline(Duration::from_secs(30))
///     .max_retries(2)
///     // Each of our accounts has an allowance of its own.
///     .key(|request| {
///         let account = request.headers.get("x-account");
///         account.and_then(|account| account.to_str().ok()).unwrap_or_default().to_owned()
///     })
///     .build()?;
/// # Ok::<(), spillgate::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct ClientBuilder<R = CloneBody> {
    quota: Result<Option<Quota>, Error>,
    settings: Settings,
    key: Option<Box<PartsText>>,
    route: Option<Box<PartsText>>,
    rules: RetryRules,
    deadline: Option<Duration>,
    replay: R,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            quota: Ok(None),
            settings: Settings::default(),
            key: None,
            route: None,
            rules: RetryRules::default(),
            deadline: None,
            replay: CloneBody,
        }
    }
}

impl<R> ClientBuilder<R> {
    /// Sends no more than this to each host and [key](Self::key), whatever the far side announces.
    /// Retries count. Without a quota, only what the far side announces counts.
    pub fn quota<Q: TryInto<Quota>>(mut self, quota: Q) -> Self
    where
        Error: From<Q::Error>,
    {
        self.quota = quota.try_into().map(Some).map_err(Error::from);
        self
    }

    /// Sets how long each attempt may wait before it is sent: a minute by default. If it is known that it
    /// would have to wait for longer, it fails at once, with the time to retry.
    pub fn max_wait(mut self, time: Duration) -> Self {
        self.settings.max_wait = time;
        self
    }

    /// Sets for how long a response is believed: an hour by default. A reset or `Retry-After` that is
    /// further away counts as this, after which one request finds out.
    pub fn max_block(mut self, time: Duration) -> Self {
        self.settings.max_block = time;
        self
    }

    /// Sets how many requests may wait per host and key: 10,000 by default. Further ones fail at once.
    pub fn max_queue(mut self, requests: usize) -> Self {
        self.settings.max_queue = requests;
        self
    }

    /// Sets how many hosts and keys have a budget of their own: 1,000 by default. Idle ones are forgotten;
    /// if there are more than that at the same time, the others share one, with what is refused there.
    pub fn max_budgets(mut self, budgets: usize) -> Self {
        self.settings.max_budgets = budgets;
        self
    }

    /// Sets who the requests are from in the eyes of the far side, such as an account or an API key: each
    /// has a budget of its own. No log shows it. By default, all requests to a host share one.
    pub fn key(mut self, key: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.key = Some(Box::new(key));
        self
    }

    /// Sets which requests of a budget meet the same limits, such as a part of the path. By default, all
    /// do. Routes for which the far side names the same limit share it, whatever they are called here; a
    /// limit without a name belongs to its route. A budget distinguishes at most 256 of them.
    pub fn route(mut self, route: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.route = Some(Box::new(route));
        self
    }

    /// Sets the time for a request in all, with waits and retries: unlimited by default. Nothing begins
    /// that cannot begin in time; what is in flight is not cut off.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = Some(time);
        self
    }

    /// Sets how often a request is sent again: 3 times by default.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.rules.max_retries = retries;
        self
    }

    /// Sets the longest wait before the first retry: 100 ms by default. It doubles with each one, up to
    /// half a minute; the actual wait is a random part of it.
    pub fn backoff(mut self, time: Duration) -> Self {
        self.rules.base = time;
        self
    }

    /// Sets how many retries there may be per request on average, of all requests to a host: 0.2 by
    /// default. One per second and five at once are allowed in any case, unless it is 0.
    pub fn retry_ratio(mut self, ratio: f64) -> Self {
        self.settings.retry_ratio = if ratio.is_finite() { ratio.max(0.0) } else { 0.0 };
        self
    }

    /// Sets whether a request with an `Idempotency-Key` may be repeated: it may by default.
    pub fn idempotency_key(mut self, is_trusted: bool) -> Self {
        self.rules.idempotency_key = is_trusted;
        self
    }

    /// Sets which errors of the service say that a request never reached the far side:
    /// [`is_not_sent`](crate::is_not_sent) by default. Such a request is repeated whatever its method.
    pub fn not_sent_if(
        mut self,
        is_not_sent: impl Fn(&(dyn StdError + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.rules.is_not_sent = Box::new(is_not_sent);
        self
    }

    /// Sets how bodies are made a second time: [`CloneBody`] by default,
    /// [`NoRetryBody`](crate::NoRetryBody) or a closure.
    pub fn replay_with<T>(self, replay: T) -> ClientBuilder<T> {
        ClientBuilder {
            replay,
            quota: self.quota,
            settings: self.settings,
            key: self.key,
            route: self.route,
            rules: self.rules,
            deadline: self.deadline,
        }
    }

    /// Sets the clock: the system's by default. Waits are tokio's, so the two have to agree.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.settings.clock = Box::new(clock);
        self
    }

    /// Sets the source of randomness, numbers from 0 up to 1: for tests.
    pub fn random(mut self, random: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.settings.random = Box::new(random);
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    ///
    /// If the quota is invalid.
    pub fn build(mut self) -> Result<ClientLayer<R>, Error> {
        let quota = std::mem::replace(&mut self.quota, Ok(None))?;
        self.settings.quota = quota.map(|quota| TokenBucket::new(&quota)).transpose()?;
        Ok(self.build_without_quota())
    }

    pub(crate) fn build_without_quota(self) -> ClientLayer<R> {
        let pacer = Pacer::new(Arc::new(self.settings), self.key, self.route);
        let Self { rules, deadline, replay, .. } = self;
        ClientLayer { shared: Arc::new(Shared { pacer: Arc::new(pacer), rules, deadline, replay }) }
    }
}

impl<R> fmt::Debug for ClientBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("quota", &self.quota)
            .field("settings", &self.settings)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
