//! Explains a decision.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Serialize, Serializer};
use spillgate::Decision;

use super::adaptive::{AdaptiveExplanation, Asked, PriorityExplanation, answer_of};
use super::bans::{BanExplanation, BansAt};
use super::{Answer, Gate, Spends};
use crate::key::Described;
use crate::policy::client_ip::Source;
use crate::policy::identity::{Identifier, Sender};
use crate::policy::lists::ListKind;
use crate::policy::route::canonical_host;
use crate::policy::{Mismatch, Rule};
use crate::store::{Spend, Store};
use crate::{Caller, Error, Mode, RequestView};

/// Why a request is allowed or denied: its caller, the limits it meets, and their state. Its
/// [`Display`](fmt::Display) is for people.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Explanation {
    /// What would be decided.
    pub answer: Answer,
    /// The caller, its secrets as a fingerprint.
    pub caller: String,
    /// What names the caller.
    pub named_by: String,
    /// The client's address.
    pub client_ip: Option<IpAddr>,
    /// Where the client's address comes from.
    pub client_ip_from: String,
    /// Whether the other end of the connection is a trusted proxy.
    pub from_trusted_proxy: bool,
    /// The caller's tier.
    pub tier: Option<String>,
    /// How much the request matters to adaptive limits; absent if the policy does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityExplanation>,
    /// The list that decides: `allow` or `block`.
    pub listed: Option<&'static str>,
    /// The narrowest range of that list that holds the client's address.
    pub listed_range: Option<String>,
    /// The ban of the caller. The lists take precedence.
    pub ban: Option<BanExplanation>,
    /// Every limit of the policy for requests, met or not.
    pub limits: Vec<LimitExplanation>,
}

/// What one limit says of a request.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct LimitExplanation {
    /// The limit's name.
    pub name: String,
    /// Whether it refuses.
    pub mode: Mode,
    /// Why the request does not meet it; `None` if it does.
    pub not_met: Option<String>,
    /// How it would be counted, if the request meets it.
    pub state: Option<StateExplanation>,
    /// Where it is, and why; absent if it does not follow load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveExplanation>,
    /// What a refusal of it is.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    refusal: Answer,
}

/// How a request would be counted under one limit.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct StateExplanation {
    /// What it is counted under.
    pub key: String,
    /// What it costs.
    pub cost: u64,
    /// Whether it would pass.
    pub passes: bool,
    /// The most that can be spent at once.
    pub limit: u64,
    /// How much is left now.
    pub remaining: u64,
    /// How many permits are held now; absent if the limit is not on concurrency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// The time until it would pass; `None` if no waiting helps.
    #[serde(serialize_with = "seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub retry_after: Option<Duration>,
    /// The time until nothing is spent any more.
    #[serde(serialize_with = "seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub reset_after: Option<Duration>,
}

impl<S: Store> Gate<S> {
    /// Explains how a request would be decided, without spending.
    ///
    /// # Errors
    ///
    /// If the store could not answer.
    pub async fn explain(&self, request: &RequestView<'_>) -> Result<Explanation, Error> {
        let mut active = self.active();
        while self.expire_lists(&active) {
            active = self.active();
        }
        let policy = &active.policy;
        let identifier = &policy.identifier;
        let sender = identifier.sender(request);
        let listed = active.lists.find(request, &sender, identifier);
        let mut spends = Spends::new();
        let has_host = policy.spend(request, &sender, &mut spends);
        let (path, host) = (policy.path(request), request.host().and_then(canonical_host));
        let now = self.store.now();
        let asked = Asked::of_request(request, &sender, active.asking(now));
        let mut limits = Vec::with_capacity(policy.rules.len());
        let for_requests = |(_, rule): &(usize, &Rule)| rule.is_for_requests();
        for (place, rule) in policy.rules.iter().enumerate().filter(for_requests) {
            let state = match spends.iter().find(|spend| spend.limit == place) {
                None => None,
                Some(spend) => {
                    let decision = self.peek(&active, spend, &asked).await?;
                    Some(StateExplanation::new(rule, spend, &decision))
                }
            };
            let mismatch = rule.matches.mismatch_at_all(request, host.as_deref(), path.as_ref());
            limits.push(LimitExplanation {
                name: rule.name.to_string(),
                mode: rule.mode,
                not_met: mismatch.filter(|_| state.is_none()).map(|why| why.to_string()),
                state,
                adaptive: active.adaptive_state(place).as_ref().map(AdaptiveExplanation::from),
                refusal: active.refusal_of(place),
            });
        }
        let bans = BansAt { bans: &self.bans, now };
        let ban = bans.of_sender(request, &sender, identifier).map(BanExplanation::from);
        Ok(Explanation {
            answer: answer(listed, ban.as_ref(), has_host, &limits),
            caller: sender.who.caller().to_string(),
            named_by: match request.caller() {
                Some(_) => "the program".to_owned(),
                None => named_by(&sender, identifier),
            },
            client_ip: sender.client.map(|client| client.address.into()),
            client_ip_from: client_ip_from(&sender),
            from_trusted_proxy: sender.from_trusted,
            tier: policy.tier_name(request, &sender).map(str::to_owned),
            priority: active.explain_priority(request, &sender, now),
            listed_range: listed.zip(sender.client).and_then(|(listed, client)| {
                let range = active.lists.list(listed).range(client.address)?;
                Some(range.to_string())
            }),
            listed: listed.map(ListKind::name),
            ban,
            limits,
        })
    }
}

impl StateExplanation {
    pub(super) fn new(rule: &Rule, spend: &Spend, decision: &Decision) -> Self {
        Self {
            key: Described::masked(&spend.key, &rule.per).to_string(),
            cost: spend.cost,
            passes: decision.is_allowed(),
            limit: decision.limit(),
            remaining: decision.remaining(),
            in_flight: rule
                .has_permits()
                .then(|| decision.limit().saturating_sub(decision.remaining())),
            retry_after: decision.retry_after(),
            reset_after: decision.reset_after(),
        }
    }
}

/// Writes a time in seconds, rounded up to a millisecond.
fn seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    let millis = time.map(|time| time.as_nanos().div_ceil(1_000_000));
    millis.map(|millis| millis as f64 / 1000.0).serialize(serializer)
}

fn answer(
    listed: Option<ListKind>,
    ban: Option<&BanExplanation>,
    has_host: bool,
    limits: &[LimitExplanation],
) -> Answer {
    let denies = |limit: &&LimitExplanation| limit.state.as_ref().is_some_and(|it| !it.passes);
    let refusals = || limits.iter().filter(denies).map(|limit| (limit.mode, limit.refusal));
    match listed {
        Some(ListKind::Block) => Answer::Blocked,
        Some(ListKind::Allow) => Answer::Allowed,
        None if ban.is_some_and(|ban| ban.mode == Mode::Enforce) => Answer::Banned,
        None if !has_host => Answer::HostRequired,
        None => answer_of(refusals()),
    }
}

fn named_by(sender: &Sender<'_>, identifier: &Identifier) -> String {
    match sender.who.caller() {
        _ if identifier.closure.is_some() => "the program's own closure".to_owned(),
        Caller::ApiKey(_) => format!("the header {}", identifier.api_key.header),
        Caller::User(_) => format!("the header {}", identifier.user.header),
        Caller::Ip(_) => "the client's address".to_owned(),
        Caller::Anonymous => "nothing that is believed".to_owned(),
    }
}

fn client_ip_from(sender: &Sender<'_>) -> String {
    match sender.client.map(|client| client.source) {
        Some(Source::Header(header)) => format!("the header {}, by a trusted proxy", header.name()),
        Some(Source::Peer) => "the connection".to_owned(),
        None => "nothing: the connection's address is not known".to_owned(),
    }
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("another path"),
            Self::Host => f.write_str("another host"),
            Self::Method => f.write_str("another method"),
            Self::Header(name) => write!(f, "the header {name} is not there, or says otherwise"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = match self.answer {
            Answer::Allowed => "allowed",
            Answer::Denied => "denied",
            Answer::Blocked => "blocked",
            Answer::Banned => "banned",
            Answer::Shed => "shed: the service can take no more at present",
            Answer::HostRequired => {
                "refused: the policy has limits for hosts, and no host is named"
            }
        };
        writeln!(f, "answer   {answer}")?;
        if let Some(list) = self.listed {
            let range = self.listed_range.iter().map(|range| format!(", as {range}"));
            let range = range.collect::<String>();
            writeln!(f, "list     on the {list} list{range}, which goes before every limit")?;
        }
        if let Some(ban) = &self.ban {
            write!(f, "{ban}")?;
        }
        writeln!(f, "caller   {}, named by {}", self.caller, self.named_by)?;
        match self.client_ip {
            Some(address) => writeln!(f, "address  {address}, from {}", self.client_ip_from)?,
            None => writeln!(f, "address  {}", self.client_ip_from)?,
        }
        if let Some(tier) = &self.tier {
            writeln!(f, "tier     {tier}")?;
        }
        if let Some(priority) = &self.priority {
            write!(f, "{priority}")?;
        }
        self.limits.iter().try_for_each(|limit| write!(f, "{limit}"))
    }
}

impl fmt::Display for LimitExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shadow = if self.mode == Mode::Shadow { " (shadow)" } else { "" };
        let Some(state) = &self.state else {
            let why = self.not_met.as_deref().unwrap_or("other requests");
            writeln!(f, "limit    {}{shadow}: not met, {why}", self.name)?;
            return self.adaptive.iter().try_for_each(|adaptive| write!(f, "{adaptive}"));
        };
        let passes = match (state.passes, self.refusal) {
            (true, _) => "passes",
            (false, Answer::Shed) => "sheds",
            (false, _) => "denies",
        };
        writeln!(f, "limit    {}{shadow}: {passes}", self.name)?;
        write!(f, "{state}")?;
        self.adaptive.iter().try_for_each(|adaptive| write!(f, "{adaptive}"))
    }
}

impl fmt::Display for StateExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "           counted under {}, cost {}", self.key, self.cost)?;
        match self.in_flight {
            Some(in_flight) => write!(f, "           {in_flight} of {} in flight", self.limit)?,
            None => write!(f, "           {} of {} left", self.remaining, self.limit)?,
        }
        match self.retry_after {
            Some(Duration::ZERO) => {}
            Some(retry_after) => write!(f, ", would pass in {retry_after:?}")?,
            None => f.write_str(", no waiting helps")?,
        }
        if let Some(reset_after) = self.reset_after.filter(|after| !after.is_zero()) {
            write!(f, ", all back in {reset_after:?}")?;
        }
        writeln!(f)
    }
}
