use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use spillgate::Decision;

use super::adaptive::RequestPermits;
use super::bans::{Ban, Banned};
use super::limit_state::{LimitState, nearest};
use super::rare::Rare;
use crate::policy::identity::Sender;
use crate::store::Spend;
use crate::{Caller, Error, Mode, Policy};

/// What was decided about a request, with the state of every limit that it met.
///
/// It may be borrowed from the gate while that decides.
#[must_use]
pub struct Outcome<'g> {
    policy: Cow<'g, Arc<Policy>>,
    pub(super) answer: Answer,
    /// Undecided for limits in shadow if another one denied.
    pub(super) spends: Spends,
    /// Kept for the log only, so only of requests that are refused.
    refused_caller: Option<Box<Caller<'static>>>,
    pub(super) rare: Option<Box<Rare>>,
    /// True if what was spent is up to a [receipt](Self::receipt).
    pub(super) has_receipt: bool,
}

/// What a request is charged under each limit that it meets: mostly one.
pub(crate) type Spends = SmallVec<[Spend; 1]>;

/// Whether a request may go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Answer {
    /// Yes, after [`Outcome::wait`].
    Allowed,
    /// No: a limit is exceeded.
    Denied,
    /// No, and never: the caller is on the block list.
    Blocked,
    /// No: the caller is banned until [`Outcome::retry_after`] has passed.
    Banned,
    /// No: the service can take no more at present. It is not the caller's fault.
    Shed,
    /// No: the policy has limits for hosts, and the request does not say clearly which host it
    /// is for.
    HostRequired,
}

impl<'g> Outcome<'g> {
    /// An outcome about which nothing is decided.
    #[inline]
    pub(super) fn new(policy: &'g Arc<Policy>) -> Self {
        Self {
            policy: Cow::Borrowed(policy),
            answer: Answer::Denied,
            spends: Spends::new(),
            refused_caller: None,
            rare: None,
            has_receipt: false,
        }
    }

    /// Makes the answer from what a store has decided about the spends.
    #[inline]
    pub(super) fn conclude(&mut self, decided: Result<(), Error>) -> Result<(), Error> {
        let enforced = || self.spends.iter().filter(|spend| !spend.is_shadow);
        let is_denied = enforced().any(Spend::is_denied);
        if let Err(error) = decided {
            let of_store = |spend: &Spend| self.policy.rules[spend.limit].adaptive.is_none();
            if enforced().any(of_store) {
                return Err(error);
            }
            // A limit in shadow never changes the answer, also if its store fails.
            self.note_shadow_error(Some(error));
        }
        self.answer = if is_denied { Answer::Denied } else { Answer::Allowed };
        Ok(())
    }

    /// Notes the ban of the caller, if there is one. Returns whether it refuses.
    #[inline]
    pub(super) fn is_refused_by(&mut self, banned: Option<Banned>) -> bool {
        match banned {
            None => false,
            Some(banned) => self.note_ban(banned),
        }
    }

    #[cold]
    fn note_ban(&mut self, banned: Banned) -> bool {
        let is_enforced = banned.is_enforced();
        if is_enforced {
            self.answer = Answer::Banned;
            self.spends.clear();
        }
        self.rare_mut().ban = Some(banned);
        is_enforced
    }

    /// Keeps who is calling, if that is refused.
    #[inline]
    pub(super) fn remember_refused(&mut self, sender: &Sender<'_>) {
        if !self.is_allowed() {
            self.keep_caller(sender);
        }
    }

    #[cold]
    fn keep_caller(&mut self, sender: &Sender<'_>) {
        self.refused_caller = Some(Box::new(sender.who.caller().into_owned()));
    }

    /// Takes the outcome out of the gate, to keep it.
    pub fn take(&mut self) -> Outcome<'static> {
        Outcome {
            policy: Cow::Owned(Arc::clone(&self.policy)),
            answer: self.answer,
            spends: std::mem::take(&mut self.spends),
            refused_caller: self.refused_caller.take(),
            rare: self.rare.take(),
            has_receipt: self.has_receipt,
        }
    }

    /// Takes the permits of the concurrency limits that the request met, be they
    /// [fixed](crate::Limit::concurrent) or [adaptive](crate::Limit::adaptive). They are released when they are dropped, with this outcome or apart from it: keep them
    /// until the request has ended.
    pub fn take_permits(&mut self) -> RequestPermits {
        self.rare.as_mut().map(|rare| std::mem::take(&mut rare.permits)).unwrap_or_default()
    }

    pub(super) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// True if the request goes ahead at once, its response does not change the cost, no limit in
    /// shadow mode would have denied it, and it holds no permits.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_allowed()
            && self.is_common()
            && (self.policy.is_plain || self.limits().all(LimitState::is_plain))
    }

    /// The answer.
    pub fn answer(&self) -> Answer {
        self.answer
    }

    /// True if the request may go ahead.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.answer == Answer::Allowed
    }

    /// The limits that the request met, enforced ones first. A denied outcome leaves out those in
    /// shadow mode.
    pub fn limits(&self) -> impl Iterator<Item = LimitState<'_>> + Clone {
        self.spends.iter().filter_map(|spend| self.state(spend))
    }

    /// The state of the limit of a spend, if that is decided.
    pub(super) fn state<'p>(&'p self, spend: &'p Spend) -> Option<LimitState<'p>> {
        let rule = &self.policy.rules[spend.limit];
        Some(LimitState { rule, spend, decision: spend.decision.as_ref()? })
    }

    /// The limits that count towards the answer.
    fn enforced(&self) -> impl Iterator<Item = LimitState<'_>> + Clone {
        self.limits().filter(|limit| limit.mode() == Mode::Enforce)
    }

    /// The decision of the first limit: the only one, if the question was about one.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        self.spends.first()?.decision.as_ref()
    }

    /// The limit that response headers describe: of those that deny, the one with the longest
    /// wait; otherwise the one with the smallest share left.
    #[inline]
    #[must_use]
    pub fn nearest(&self) -> Option<LimitState<'_>> {
        match &*self.spends {
            [spend] => self.state(spend).filter(|_| !spend.is_shadow),
            _ => self.nearest_of_several(),
        }
    }

    #[inline(never)]
    fn nearest_of_several(&self) -> Option<LimitState<'_>> {
        nearest(self.enforced())
    }

    /// The name of the limit that denied the request: of several, the one with the longest wait.
    #[must_use]
    pub fn denied_by(&self) -> Option<&str> {
        let nearest = self.nearest().filter(|_| self.answer == Answer::Denied)?;
        Some(nearest.name())
    }

    /// The time until the same request would pass every limit: zero if it was allowed;
    /// `None` if no waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.answer {
            Answer::Allowed => Some(Duration::ZERO),
            Answer::Blocked | Answer::HostRequired => None,
            Answer::Denied => self.nearest()?.decision().retry_after(),
            Answer::Shed => self.shed_retry_after(),
            Answer::Banned => self.banned().map(|banned| banned.rest),
        }
    }

    /// How long an allowed request should wait before it goes ahead: zero unless a
    /// shaper spaces requests out.
    #[must_use]
    pub fn wait(&self) -> Duration {
        if !self.is_allowed() {
            return Duration::ZERO;
        }
        self.enforced().map(|limit| limit.decision().wait()).max().unwrap_or_default()
    }

    /// Who sent the request, if it was refused.
    #[must_use]
    pub fn refused_caller(&self) -> Option<&Caller<'static>> {
        self.refused_caller.as_deref()
    }

    /// The ban of the caller. It refuses the request unless it is in [shadow mode](Ban::mode).
    #[must_use]
    pub fn ban(&self) -> Option<&Ban> {
        self.banned().map(|banned| &*banned.ban)
    }

    fn banned(&self) -> Option<&Banned> {
        self.rare.as_ref()?.ban.as_ref()
    }

    /// The store's error about a limit in shadow mode. It changes nothing for the request.
    #[must_use]
    pub fn shadow_error(&self) -> Option<&Error> {
        self.rare.as_ref()?.shadow_error.as_ref()
    }

    /// True if the response determines the cost.
    pub(super) fn changes_cost(&self) -> bool {
        self.spends.iter().any(|spend| self.policy.rules[spend.limit].settle.is_some())
    }

    /// True if the response determines the cost, or may be an offence: pass it to [`Gate::settle`](crate::Gate::settle).
    #[must_use]
    pub fn needs_settling(&self) -> bool {
        self.is_allowed()
            && self.spends.iter().any(|spend| self.policy.rules[spend.limit].is_settled())
    }
}

debug_fields!(self: Outcome<'_> { answer: self.answer, limits: self.limits().collect::<Vec<_>>() });
