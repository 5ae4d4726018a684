//! How much a request matters.

use http::header::HeaderName;
use spillgate::adaptive::PriorityClass;

use super::Policy;
use super::rule::Matches;
use crate::RequestView;
use crate::policy::identity::Sender;
use crate::policy::route::{CanonicalPath, RequestPath, canonical_host};
use crate::request_view::only;

/// Which class a request is of.
#[derive(Debug, Default)]
pub(crate) struct PriorityRules {
    pub(crate) default: PriorityClass,
    /// Believed from trusted proxies only.
    pub(crate) header: Option<HeaderName>,
    /// For each tier of the policy, the class of its callers, if it gives them one.
    pub(crate) tiers: Vec<Option<PriorityClass>>,
    /// The first that matches decides.
    pub(crate) rules: Vec<(PriorityClass, Matches)>,
}

/// A class, and what gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classified {
    pub(crate) class: PriorityClass,
    pub(crate) by: ClassifiedBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassifiedBy {
    Header,
    /// The rule of this number, counted from one.
    Rule(usize),
    Tier,
    Default,
}

/// The class of a name.
pub(crate) fn class_named(name: &[u8]) -> Option<PriorityClass> {
    PriorityClass::ALL.into_iter().find(|class| class.name().as_bytes() == name)
}

impl Policy {
    /// The class of a request; the normal one if the policy says nothing of priorities.
    pub(crate) fn classify(&self, request: &RequestView<'_>, sender: &Sender<'_>) -> Classified {
        let Some(priorities) = &self.priorities else {
            return Classified { class: PriorityClass::default(), by: ClassifiedBy::Default };
        };
        if let Some(class) = priorities.of_header(request, sender.from_trusted) {
            return Classified { class, by: ClassifiedBy::Header };
        }
        let classified = match self.class_of_tier(self.tiers.of(request, sender, &self.identifier))
        {
            Some(class) => Classified { class, by: ClassifiedBy::Tier },
            None => Classified { class: priorities.default, by: ClassifiedBy::Default },
        };
        match priorities.rules.is_empty() {
            true => classified,
            false => priorities.by_rules(self, request, sender, classified),
        }
    }

    /// The class of the callers of a tier.
    pub(crate) fn class_of_tier(&self, tier: Option<usize>) -> Option<PriorityClass> {
        self.priorities.as_ref()?.tiers.get(tier?).copied().flatten()
    }
}

impl PriorityRules {
    /// The class that a trusted proxy names. One that there is not counts for nothing.
    fn of_header(&self, request: &RequestView<'_>, from_trusted: bool) -> Option<PriorityClass> {
        let header = self.header.as_ref().filter(|_| from_trusted)?;
        class_named(only(request.headers(), header)?.as_bytes().trim_ascii())
    }

    /// The class by the first rule that matches, or else the one that the request has without them.
    ///
    /// From the last to the first, so that each rule is compared with what would be without it:
    /// whether it makes a request better decides what is believed.
    fn by_rules(
        &self,
        policy: &Policy,
        request: &RequestView<'_>,
        sender: &Sender<'_>,
        without: Classified,
    ) -> Classified {
        let (path, host) = (policy.path(request), request.host().and_then(canonical_host));
        let said = Said { request, host: host.as_deref(), path: path.as_ref() };
        let numbered = self.rules.iter().enumerate().rev();
        numbered.fold(without, |otherwise, (index, (class, rule))| {
            let is_better = *class > otherwise.class;
            // Anyone can send a header.
            let is_believed = !is_better || sender.from_trusted || rule.headers.is_empty();
            match is_believed && rule.holds(&said, is_better) {
                true => Classified { class: *class, by: ClassifiedBy::Rule(index + 1) },
                false => otherwise,
            }
        })
    }
}

/// What a request says about itself.
struct Said<'a, 'r> {
    request: &'a RequestView<'r>,
    host: Option<&'a str>,
    path: Option<&'a RequestPath<'r>>,
}

impl Matches {
    /// True if a request meets all conditions. Clients choose how they spell a path, and must not
    /// gain by it: for a better class every reading of it has to match, for a worse one any. A
    /// host that is not clear matches nothing.
    fn holds(&self, &Said { request, host, path }: &Said<'_, '_>, is_better: bool) -> bool {
        let host_fits = |host| self.hosts.iter().any(|pattern| pattern.matches(host));
        let fits = |path: &CanonicalPath<'_>| self.paths.iter().any(|it| it.matches(path));
        let path_fits = |path: &RequestPath<'_>| match is_better {
            true => path.readings().all(fits),
            false => path.readings().any(fits),
        };
        (self.hosts.is_empty() || host.is_some_and(host_fits))
            && (self.paths.is_empty() || path.is_some_and(path_fits))
            && self.mismatch(request).is_none()
    }
}
