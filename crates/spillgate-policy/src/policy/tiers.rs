use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::key::{Key, Value};
use crate::policy::Part;
use crate::policy::identity::{Identifier, Sender};
use crate::{Caller, RequestView};

/// Which callers have quotas of their own.
pub(crate) struct Tiers {
    pub(crate) names: Vec<String>,
    /// The place of each caller's tier among the names.
    callers: HashMap<Box<[u8]>, usize>,
    pub(crate) closure: Option<TierClosure>,
}

/// Names the tier of a caller.
pub(crate) type TierClosure =
    Arc<dyn Fn(&RequestView<'_>, &Caller<'_>) -> Option<Cow<'static, str>> + Send + Sync>;

impl Tiers {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self { names, callers: HashMap::new(), closure: None }
    }

    /// Puts a caller into a tier, and returns its previous one.
    pub(crate) fn assign(&mut self, caller: &Caller<'_>, tier: usize) -> Option<usize> {
        self.callers.insert(bytes(caller).as_bytes().into(), tier)
    }

    /// The callers whom the policy lists in a tier, each with the bytes that tell it from others.
    pub(crate) fn callers_of(
        &self,
        tier: usize,
    ) -> impl Iterator<Item = (Vec<u8>, Caller<'static>)> {
        let callers = self.callers.iter().filter(move |(_, place)| **place == tier);
        callers.filter_map(|(bytes, _)| Some((bytes.to_vec(), Key::from_bytes(bytes).to_caller()?)))
    }

    /// The place of the caller's tier, as the closure, the policy, or a trusted proxy
    /// says.
    // Inlined, so that policies without tiers pay for one branch.
    #[inline(always)]
    pub(crate) fn of(
        &self,
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        identifier: &Identifier,
    ) -> Option<usize> {
        match self.names.is_empty() {
            true => None,
            false => self.found(request, sender, identifier),
        }
    }

    fn found(
        &self,
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        identifier: &Identifier,
    ) -> Option<usize> {
        let caller = sender.who.caller();
        let told = self.closure.as_ref().and_then(|tier_of| tier_of(request, &caller));
        if let Some(name) = told {
            return self.place(name.as_bytes());
        }
        let header = || self.place(identifier.tier(request, sender.from_trusted)?);
        self.listed(&caller).or_else(header)
    }

    /// The place of the tier in which the policy lists a caller.
    pub(crate) fn listed(&self, caller: &Caller<'_>) -> Option<usize> {
        if self.callers.is_empty() {
            return None;
        }
        self.callers.get(bytes(caller).as_bytes()).copied()
    }

    /// The place of the tier of the caller whom the values of a limit's parts name.
    pub(crate) fn named(
        &self,
        per: &[Part],
        values: &[&str],
        identifier: &Identifier,
    ) -> Option<usize> {
        let caller = per.iter().zip(values).find_map(|(part, value)| match part {
            Part::Caller | Part::Ip => Caller::parse(value).ok(),
            Part::ApiKey => Some(Caller::ApiKey(value.as_bytes().into())),
            Part::User => Some(Caller::User(value.as_bytes().into())),
            Part::Header(_)
            | Part::Path(_)
            | Part::Entry(_)
            | Part::Level(_)
            | Part::Descriptor
            | Part::Key => None,
        });
        self.listed(&identifier.as_counted(caller?))
    }

    // Tiers are few: comparing their names beats hashing them.
    pub(crate) fn place(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|known| known.as_bytes() == name)
    }
}

fn bytes(caller: &Caller<'_>) -> Key {
    let mut key = Key::global();
    key.push(Value::from(caller), true);
    key
}
