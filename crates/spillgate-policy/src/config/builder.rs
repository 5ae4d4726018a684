use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::compile::{Compiler, Source};
use super::file;
use crate::config::spec::{At, ListItem, Spec, all};
use crate::policy::identity::IdentifyClosure;
use crate::policy::tiers::TierClosure;
use crate::{
    Accept, Caller, Domain, Error, Identity, Limit, ListKind, Mode, PathSpelling, Policy,
    Priorities, Problem, RequestView, Terms, Tier,
};

/// Builds a [`Policy`].
///
/// ```
/// use spillgate_policy::{Accept, Identity, Limit, Policy, Tier};
///
/// let policy = Policy::builder()
///     .identity(Identity::new().api_key("x-api-key", Accept::keys(["k1", "k2"])))
///     .block(["203.0.113.9", "key:leaked-123"])
///     .limit(Limit::new("public", "10/s burst 20").path("/public/{*rest}"))
///     .limit(Limit::new("login", "5/min").path("/login").per(["ip"]))
///     .tier("gold", Tier::new().callers(["api-key:k1"]).quota("public", "100/s burst 200"))
///     .build()?;
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
#[derive(Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct PolicyBuilder {
    spec: Spec,
    identify: Option<IdentifyClosure>,
    tier_of: Option<TierClosure>,
    /// What was read, to locate problems.
    source: Source,
}

impl PolicyBuilder {
    /// Begins with the text of a policy file.
    ///
    /// # Errors
    ///
    /// As for [`Policy::from_toml`].
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Self::read(text, None)
    }

    /// Begins with the text of a policy file that names other files relative to a folder.
    ///
    /// # Errors
    ///
    /// As for [`Policy::from_toml_in`].
    pub fn from_toml_in(text: &str, folder: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::read_in(text, None, folder.into(), |_| ())
    }

    /// Begins with a policy file.
    ///
    /// # Errors
    ///
    /// As for [`Policy::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = file::read(path).map_err(|error| {
            let message = format!("the policy {} cannot be read: {error}", path.display());
            Error::policy(vec![Problem::new(message)])
        })?;
        Self::read(&text, Some(path))
    }

    pub(crate) fn read(text: &str, path: Option<&Path>) -> Result<Self, Error> {
        Self::read_with(text, path, |_| ())
    }

    /// Reads a policy, and lets a program read its own tables of the same text.
    pub(crate) fn read_with(
        text: &str,
        path: Option<&Path>,
        tables: impl FnOnce(&mut file::Section<'_>),
    ) -> Result<Self, Error> {
        let name = path.map(|path| path.display().to_string());
        let folder = path.and_then(Path::parent).map_or_else(PathBuf::new, Path::to_owned);
        Self::read_in(text, name, folder, tables)
    }

    pub(crate) fn read_in(
        text: &str,
        name: Option<String>,
        folder: PathBuf,
        tables: impl FnOnce(&mut file::Section<'_>),
    ) -> Result<Self, Error> {
        let (spec, problems) = file::decode_with(text, name.as_deref(), tables);
        let source = Source { text: text.to_owned(), name, folder };
        if problems.is_empty() {
            return Ok(Self { spec, source, ..Self::default() });
        }
        // What could be read is checked as well, so that all problems are reported at once.
        let checked = Compiler::partial(&source, problems).compile(&spec, None, None);
        Err(Error::policy(checked.err().unwrap_or_default()))
    }

    /// True if there are limits for descriptors so far.
    #[must_use]
    pub fn has_descriptors(&self) -> bool {
        let Spec { limits, domains, .. } = &self.spec;
        let is_for_descriptors =
            |limit: &Limit| limit.matches.domain.is_some() || limit.matches.descriptor.is_some();
        !domains.is_empty() || limits.iter().any(is_for_descriptors)
    }

    /// Accepts a policy file without limits.
    pub fn without_limits(mut self) -> Self {
        self.spec.lacks_limits = false;
        self
    }

    /// Sets how callers are identified.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.spec.identity = identity;
        self
    }

    /// Identifies callers by a closure in place of [`identity`](Self::identity); `None` is
    /// "anonymous". It must not trust what a client can forge, nor call the gate.
    pub fn identify_by(
        mut self,
        identify: impl for<'r> Fn(&RequestView<'r>) -> Option<Caller<'r>> + Send + Sync + 'static,
    ) -> Self {
        self.identify = Some(Arc::new(identify));
        self
    }

    /// Says which spellings of a path are alike.
    pub fn path_spelling(mut self, spelling: PathSpelling) -> Self {
        self.spec.path_spelling = spelling;
        self
    }

    /// Declares that the program identifies callers by
    /// [`RequestView::with_caller`](crate::RequestView::with_caller): any caller may then be in a
    /// tier, have a key or be a user, even if [`identity`](Self::identity) has no header for it.
    pub fn names_callers(mut self) -> Self {
        self.spec.names_callers = true;
        self
    }

    /// Accepts API keys by a closure in place of the policy's `accept`. The header stays:
    /// `x-api-key`, unless the policy names another.
    pub fn accept_api_keys(
        mut self,
        accepts: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    ) -> Self {
        let identity = std::mem::take(&mut self.spec.identity);
        self.spec.identity = identity.accept_api_keys(Accept::closure(accepts));
        self
    }

    /// Accepts users by a closure in place of the policy's `accept`. The header stays:
    /// `x-user-id`, unless the policy names another.
    pub fn accept_users(mut self, accepts: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        let identity = std::mem::take(&mut self.spec.identity);
        self.spec.identity = identity.accept_users(Accept::closure(accepts));
        self
    }

    /// Never limits these callers: addresses, ranges, `key:NAME`, `user:NAME`.
    pub fn allow<T: Into<String>>(mut self, entries: impl IntoIterator<Item = T>) -> Self {
        self.spec.allow.extend(all(entries).into_iter().map(ListItem::from));
        self
    }

    /// Always refuses these callers, also those who are [allowed](Self::allow).
    pub fn block<T: Into<String>>(mut self, entries: impl IntoIterator<Item = T>) -> Self {
        self.spec.block.extend(all(entries).into_iter().map(ListItem::from));
        self
    }

    /// Adds an entry to a list, perhaps up to a time, and with a comment.
    pub fn list(mut self, kind: ListKind, entry: impl Into<String>, terms: Terms) -> Self {
        let list = match kind {
            ListKind::Allow => &mut self.spec.allow,
            ListKind::Block => &mut self.spec.block,
        };
        let entry = At::from(entry.into());
        list.push(ListItem { entry, terms: Some(Box::new(terms.into())) });
        self
    }

    /// Adds a limit.
    pub fn limit(mut self, limit: Limit) -> Self {
        self.spec.limits.push(limit);
        self
    }

    /// Puts all limits so far in [shadow mode](crate::Mode::Shadow): they count, and refuse nobody.
    pub fn all_in_shadow(mut self) -> Self {
        self.spec.limits.iter_mut().for_each(|limit| limit.mode = Some(Mode::Shadow.into()));
        self
    }

    /// Adds a tier, or replaces the one of that name.
    pub fn tier(mut self, name: impl Into<String>, tier: Tier) -> Self {
        self.spec.tiers.insert(name.into(), tier);
        self
    }

    /// Sets how much requests matter, when limits that [follow load](Limit::adaptive) cannot let
    /// all of them through.
    pub fn priority(mut self, priorities: Priorities) -> Self {
        self.spec.priority = Some(priorities);
        self
    }

    /// Adds a tree of limits for the descriptors of a domain, to the policy's own limits for it.
    pub fn domain(mut self, domain: Domain) -> Self {
        self.spec.domains.push(domain);
        self
    }

    /// Keeps room for quotas that [come with a descriptor](crate::Descriptor::quota). A policy
    /// that has any limit for descriptors does so anyway.
    pub fn call_quotas(mut self) -> Self {
        self.spec.call_quotas = true;
        self
    }

    /// Asks a closure for the caller's tier first. If it says `None`, the policy's lists
    /// and header are asked. The closure must not call the gate.
    pub fn tier_of<T: Into<Cow<'static, str>>>(
        mut self,
        tier_of: impl Fn(&RequestView<'_>, &Caller<'_>) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        let tier_of = move |request: &RequestView<'_>, caller: &Caller<'_>| {
            tier_of(request, caller).map(Into::into)
        };
        self.tier_of = Some(Arc::new(tier_of));
        self
    }

    /// Checks all of it and builds the policy.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in it.
    pub fn build(self) -> Result<Policy, Error> {
        let compiler = Compiler::new(&self.source);
        compiler.compile(&self.spec, self.identify, self.tier_of).map_err(Error::policy)
    }
}

debug_fields!(self: PolicyBuilder { limits: self.spec.limits, tiers: self.spec.tiers });
