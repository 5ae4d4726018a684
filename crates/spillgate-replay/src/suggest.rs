//! Proposes quotas from what callers did.

use std::hash::BuildHasher;
use std::ops::Range;

use spillgate::KeyedState;
use spillgate_policy::{Outcome, Policy, PolicyFile};
use toml::de::{DeTable, DeValue};

use crate::demand::{Demand, RATES};
use crate::engine::{Engine, EngineOptions};
use crate::input::{Input, InputSummary};
use crate::replay::wanted;
use crate::{InputOptions, Record, ReplayError, Source};

/// A quota is sought whose burst refills within this time.
const REFILL_SECONDS: u64 = 60;

/// Finds quotas with which a share of all callers would never have been denied.
///
/// Only the quotas of token and leaky buckets change, and only for requests that the log has;
/// tiers and overrides stay as they are.
#[derive(Debug)]
pub struct Suggest {
    policy: PolicyFile,
    share: f64,
    input: InputOptions,
    engine: EngineOptions,
}

/// A policy with other quotas.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Suggestion {
    /// The policy file.
    pub text: String,
    /// What was found for each limit: its name, and its quota if there is a better one.
    pub limits: Vec<(String, Option<String>)>,
    /// What was read.
    pub input: InputSummary,
}

impl Suggest {
    /// Begins with a policy, whose quotas do not matter.
    #[must_use]
    pub fn new(policy: PolicyFile) -> Self {
        Self {
            policy,
            share: 0.999,
            input: InputOptions::default(),
            engine: EngineOptions::default(),
        }
    }

    /// The share of callers that is never denied, between 0 and 1. Default: 0.999.
    #[must_use]
    pub fn never_denied(self, share: f64) -> Self {
        Self { share: share.clamp(0.0, 1.0), ..self }
    }

    /// How the logs are read.
    #[must_use]
    pub fn input(self, input: InputOptions) -> Self {
        Self { input, ..self }
    }

    /// What the logs do not say.
    #[must_use]
    pub fn engine(self, engine: EngineOptions) -> Self {
        Self { engine, ..self }
    }

    /// Reads logs, and proposes quotas.
    ///
    /// # Errors
    ///
    /// If the policy is invalid, or a log cannot be read.
    pub fn run(
        self,
        logs: Vec<Source>,
        progress: impl FnMut(&InputSummary),
    ) -> Result<Suggestion, ReplayError> {
        // In shadow mode, every limit sees every request.
        let policy = self.policy.builder()?.all_in_shadow().build()?;
        let wanted = wanted(std::iter::once(&policy));
        let names: Vec<String> = policy.limits().map(str::to_owned).collect();
        let mut demands: Vec<Demand> = names.iter().map(|_| Demand::default()).collect();
        let input = Input::new(logs, &wanted, self.input)?;
        let hasher = KeyedState::new();
        let mut policy = Some(policy);
        let mut engine: Option<Engine> = None;
        let each = |record: &Record<'_>| -> Result<(), ReplayError> {
            if let Some(policy) = policy.take() {
                let options = self.engine.clone();
                engine = Some(Engine::new(policy, wanted.clone(), record.time, options)?);
            }
            let Some(engine) = &mut engine else { return Ok(()) };
            engine.decide(record, |now, _, outcome: &Outcome<'_>| {
                for limit in outcome.limits() {
                    // Those of a tier have a quota of their own.
                    if limit.key().tier().is_none() && !limit.is_concurrency() {
                        let caller = hasher.hash_one(limit.key().as_bytes());
                        demands[limit.place()].count(caller, now, limit.cost());
                    }
                }
            })?;
            Ok(())
        };
        let input = input.read(each, progress)?;
        let algorithms = engine.map(|engine| engine.gate().limits()).unwrap_or_default();
        let is_bucket = |place: usize| {
            let algorithm = algorithms.get(place).map(|limit| limit.algorithm);
            matches!(algorithm, Some("token-bucket" | "leaky-bucket"))
        };
        let found = |(place, demand): (usize, &Demand)| match is_bucket(place) {
            true => quota(demand, self.share),
            false => None,
        };
        let quotas: Vec<_> = demands.iter().enumerate().map(found).collect();
        let limits: Vec<_> = names.into_iter().zip(quotas).collect();
        let text = write(self.policy.text(), &limits, &demands, self.share);
        Ok(Suggestion { text, limits, input })
    }
}

/// The lowest rate whose burst refills soon; `None` if nobody called.
fn quota(demand: &Demand, share: f64) -> Option<String> {
    if demand.callers() == 0 {
        return None;
    }
    let refills = |rate: &usize| {
        let (amount, seconds, _) = RATES[*rate];
        demand.burst(*rate, share) * seconds <= (amount * REFILL_SECONDS).max(seconds)
    };
    let rate = (0..RATES.len()).find(refills).unwrap_or(RATES.len() - 1);
    let (amount, _, unit) = RATES[rate];
    Some(format!("{amount}/{unit} burst {}", rounded_up(demand.burst(rate, share))))
}

/// A number with two digits that count.
fn rounded_up(number: u64) -> u64 {
    let mut unit = 1;
    while number / unit >= 100 {
        unit *= 10;
    }
    number.div_ceil(unit) * unit
}

/// Writes a policy with other quotas, and says on top what they are made from.
fn write(
    text: &str,
    limits: &[(String, Option<String>)],
    demands: &[Demand],
    share: f64,
) -> String {
    let percent = share * 100.0;
    let mut written = format!(
        "# Quotas proposed by spillgate replay: {percent} % of the callers in the log are never \
         denied.\n"
    );
    for ((name, quota), demand) in limits.iter().zip(demands) {
        let (callers, kept) = (demand.callers(), demand.never_denied(share));
        let sample = if demand.is_sample() { ", a sample" } else { "" };
        let proposed = quota.as_deref();
        let quota = proposed.unwrap_or("as it was: no bucket, or no requests");
        written.push_str(&format!(
            "# {name:?}: {quota} ({kept} of {callers} callers never denied{sample})\n"
        ));
        if proposed.is_some() {
            written.push_str(&others(demand, share, quota));
        }
    }
    let mut copied = 0;
    for (place, range) in quota_ranges(text) {
        let quota = place.and_then(|name| limits.iter().find(|(limit, _)| *limit == name));
        if let Some((_, Some(quota))) = quota {
            written.push_str(&text[copied..range.start]);
            written.push_str(&format!("{quota:?}"));
            copied = range.end;
        }
    }
    written.push_str(&text[copied..]);
    written
}

/// Shares that are tried besides the wanted one, in percent.
const OTHER_PERCENTS: [f64; 5] = [99.99, 99.9, 99.5, 99.0, 95.0];

/// What other shares would give: where a quota falls steeply, few callers need far more than others.
fn others(demand: &Demand, share: f64, proposed: &str) -> String {
    let mut written = String::new();
    let mut last = proposed.to_owned();
    for percent in OTHER_PERCENTS.into_iter().filter(|percent| percent / 100.0 < share) {
        let other = percent / 100.0;
        if let Some(quota) = quota(demand, other).filter(|quota| *quota != last) {
            let kept = demand.never_denied(other);
            written.push_str(&format!("#   for {percent} %: {quota} ({kept} callers)\n"));
            last = quota;
        }
    }
    written
}

/// Where the quotas of limits are written, in order, with the names of the limits.
fn quota_ranges(text: &str) -> Vec<(Option<String>, Range<usize>)> {
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let Some(DeValue::Array(limits)) = table.get_ref().get("limit").map(toml::Spanned::get_ref)
    else {
        return Vec::new();
    };
    let ranges = limits.iter().filter_map(|limit| {
        let DeValue::Table(limit) = limit.get_ref() else { return None };
        let name = limit.get("name").and_then(|name| name.get_ref().as_str().map(str::to_owned));
        let quota = limit.get("quota").filter(|quota| quota.get_ref().is_str())?;
        Some((name, quota.span()))
    });
    let mut ranges: Vec<_> = ranges.collect();
    ranges.sort_by_key(|(_, range)| range.start);
    ranges
}

impl Suggestion {
    /// The policy.
    ///
    /// # Errors
    ///
    /// If it names files that are not in the working directory.
    pub fn policy(&self) -> Result<Policy, spillgate_policy::Error> {
        PolicyFile::from_text(self.text.clone()).policy()
    }
}
