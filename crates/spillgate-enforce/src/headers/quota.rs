use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use spillgate_policy::LimitState;

use super::text::{Text, number};
use super::whole_seconds;
use crate::per_limit::PerLimit;

/// Quotas of limits as header values, formatted once and not per response.
#[derive(Default)]
pub(crate) struct Quotas(PerLimit<Usual>);

/// The quota that most callers have under a limit.
struct Usual {
    limit: u64,
    window: Option<Duration>,
    is_concurrency: bool,
    /// `None` if there are too many to be kept.
    text: Option<&'static QuotaText>,
}

/// A quota as header values.
pub(super) struct QuotaText {
    /// `"public";q=20;w=2` or `"uploads";q=50;qu="concurrent-requests"`
    pub(super) policy: HeaderValue,
    /// `20`
    pub(super) amount: HeaderValue,
    /// How much of the policy is the name.
    name: usize,
}

/// The text of a quota: one that is kept, or one of its own.
pub(super) enum Quoted {
    Kept(&'static QuotaText),
    Own(Box<QuotaText>),
}

impl Quotas {
    pub(super) fn of(&self, limit: LimitState<'_>) -> Quoted {
        let decision = limit.decision();
        let kept = self.0.with(
            limit,
            || Usual::of(limit),
            |usual| {
                let window = decision.window();
                let is_usual = usual.limit == decision.limit()
                    && usual.window == window
                    // Permits have no window.
                    && (window.is_some() || usual.is_concurrency == limit.is_concurrency());
                usual.text.filter(|_| is_usual)
            },
        );
        // A tier or an override has another.
        kept.map_or_else(|| Quoted::Own(Box::new(QuotaText::of(limit))), Quoted::Kept)
    }
}

impl Usual {
    fn of(limit: LimitState<'_>) -> Self {
        let (text, decision) = (QuotaText::of(limit).keep(), limit.decision());
        let is_concurrency = limit.is_concurrency();
        Self { limit: decision.limit(), window: decision.window(), is_concurrency, text }
    }
}

/// How many texts are kept at most.
const KEPT: usize = 4_096;

/// The unit of a limit on concurrency, by the IETF's draft. Without it, requests are counted.
const CONCURRENT: &[u8] = b";qu=\"concurrent-requests\"";

impl QuotaText {
    fn of(limit: LimitState<'_>) -> Self {
        let decision = limit.decision();
        let name = shown(limit);
        let mut text = Text::quoted(name);
        text.parameter(b";q=", decision.limit());
        match decision.window() {
            _ if limit.is_concurrency() => text.push(CONCURRENT),
            Some(window) => text.parameter(b";w=", whole_seconds(window)),
            None => {}
        }
        let name = name.len() + 2;
        Self { policy: text.value(), amount: number(decision.limit()), name }
    }

    /// `"public"`
    pub(super) fn name(&self) -> &[u8] {
        self.policy.as_bytes().get(..self.name).unwrap_or_default()
    }

    /// Keeps a text for as long as the program runs, so that responses can share it without
    /// counting how many do, which all threads would count in one place. There are as many
    /// of them as quotas were ever configured, and no more than [`KEPT`].
    fn keep(self) -> Option<&'static Self> {
        static TEXTS: LazyLock<Mutex<HashMap<&[u8], &QuotaText>>> = LazyLock::new(Mutex::default);
        let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(self.policy.as_bytes()) {
            return Some(text);
        }
        if texts.len() >= KEPT {
            return None;
        }
        let text: &'static Self = Box::leak(Box::new(Self {
            policy: kept(&self.policy)?,
            amount: kept(&self.amount)?,
            name: self.name,
        }));
        texts.insert(text.policy.as_bytes(), text);
        Some(text)
    }
}

/// The name that answers show, if the string of a structured field can hold it as it is.
fn shown(limit: LimitState<'_>) -> &str {
    let is_plain = |name: &&str| {
        name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
    };
    limit.shown_name().filter(is_plain).unwrap_or(limit.name())
}

fn kept(value: &HeaderValue) -> Option<HeaderValue> {
    let text: &'static str = Box::leak(value.to_str().ok()?.into());
    Some(HeaderValue::from_static(text))
}

impl Deref for Quoted {
    type Target = QuotaText;

    fn deref(&self) -> &QuotaText {
        match self {
            Self::Kept(text) => text,
            Self::Own(text) => text,
        }
    }
}
