//! Loads a configuration: parses the file once, and compiles its policy once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use spillgate::WhenFull;
use spillgate_net::read_file;
use spillgate_policy::{Policy, PolicyBuilder, PolicyFile, Tables};

use super::args::OFF_IN_PROXY;
use super::declare::Sources;
use super::types::LimitQuota;
use super::{Flags, Listen, ProxySettings, Settings, StoreSettings};
use crate::envoy::{self, Problems};

/// Where a configuration is loaded from, at the start and at every reload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// The file, if there is one.
    pub(crate) path: Option<PathBuf>,
    /// envoyproxy/ratelimit files in place of the file.
    rules: Option<PathBuf>,
    /// The quota of the only limit, if there is no file.
    pub(crate) limit: Option<LimitQuota>,
    flags: Flags<true>,
    /// True for `spillgate proxy`.
    is_proxy: bool,
}

/// A configuration without its policy, which belongs to the gate.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file's text, or the example's.
    pub(crate) file: PolicyFile,
    pub(crate) additions: Additions,
    pub(crate) settings: Settings,
    /// Of all [files](Settings::files), when they were loaded or just before.
    pub(crate) fingerprint: u64,
}

/// What a policy has that its file does not say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Additions {
    /// Limits of envoyproxy/ratelimit files.
    pub(crate) envoy: envoy::Folder,
    /// Room for quotas that come with calls.
    call_quotas: bool,
    /// Room for keys of `CL.THROTTLE`: how many, and what happens when it is full.
    throttle: Option<(usize, WhenFull)>,
}

/// The policy of a server without a file.
const EXAMPLE: &str = include_str!("default.toml");

/// The policy beside envoyproxy/ratelimit files alone.
const NO_LIMITS: &str = "limit = []\n";

impl Source {
    /// The source of `spillgate serve`.
    pub(crate) fn serve(path: Option<PathBuf>, flags: Flags<false>) -> Self {
        Self { path, flags: Flags(flags.0), ..Self::default() }
    }

    /// The source of a command that takes a configuration file, or envoyproxy/ratelimit files: a
    /// directory, or a file that is named like one of them.
    pub(crate) fn file_or_rules(path: PathBuf, flags: Flags<false>) -> Self {
        match path.is_dir() || envoy::is_yaml(&path) {
            true => Self { rules: Some(path), ..Self::serve(None, flags) },
            false => Self::serve(Some(path), flags),
        }
    }

    /// True if there are only envoyproxy/ratelimit files.
    pub(crate) fn is_rules(&self) -> bool {
        self.rules.is_some()
    }

    /// The folder that relative paths refer to.
    pub(crate) fn folder(&self) -> &Path {
        let file = self.path.as_deref().and_then(Path::parent);
        self.rules.as_deref().or(file).unwrap_or(Path::new(""))
    }

    /// The source of `spillgate proxy`.
    pub(crate) fn proxy(
        path: Option<PathBuf>,
        limit: Option<LimitQuota>,
        flags: Flags<true>,
    ) -> Self {
        Self { path, limit, flags, is_proxy: true, rules: None }
    }

    /// The policy alone, as a server with gRPC would have it: with limits of envoyproxy/ratelimit
    /// files, and room for quotas that come with calls. Other settings are not checked.
    pub(crate) fn policy(&self) -> Result<Policy, Problems> {
        let file = self.file()?;
        let mut sources = Sources::new(&self.flags.0, self.folder(), &[]);
        let (builder, (settings, ..)) =
            file.decode(|tables| self.tables(tables, &mut sources)).map_err(Problems::from)?;
        let (rules, algorithm) = (self.rules.as_deref(), settings.envoy_algorithm());
        let rules = rules.or(settings.envoy_config.as_deref());
        let envoy = rules.map(|folder| envoy::load(folder, algorithm)).transpose()?;
        let envoy = envoy.unwrap_or_default();
        let additions = Additions { envoy, call_quotas: true, throttle: None };
        additions.added_to(builder).map_err(Problems::from)
    }

    fn file(&self) -> Result<PolicyFile, spillgate_policy::Error> {
        Ok(match (&self.path, &self.limit) {
            (Some(path), _) => PolicyFile::read(path)?,
            (None, Some(quota)) => PolicyFile::from_text(quota.policy()),
            (None, None) if self.is_rules() => PolicyFile::from_text(NO_LIMITS),
            (None, None) => PolicyFile::from_text(EXAMPLE),
        })
    }

    /// Loads the configuration. A server that has `begun` keeps its listeners and the room of
    /// `CL.THROTTLE`, whatever the settings say now. The error lists all problems.
    pub(crate) fn load(&self, begun: Option<&Settings>) -> Result<(Config, Policy), Problems> {
        let file = self.file()?;
        let off = if self.is_proxy { OFF_IN_PROXY } else { &[] };
        let mut sources = Sources::new(&self.flags.0, self.folder(), off);
        let decoded = file.decode(|tables| self.tables(tables, &mut sources));
        let mut problems = std::mem::take(&mut sources.problems);
        let (builder, (mut settings, store, proxy, has_proxy)) =
            decoded.map_err(|error| Problems::from(error).and(std::mem::take(&mut problems)))?;
        #[cfg(test)]
        tests::PARSED.set(tests::PARSED.get() + 1);
        if let Some(rules) = &self.rules {
            settings.envoy_config = Some(rules.clone());
        }
        // Files are seen before they are used, so that none can change unseen in between.
        settings.proxy = proxy.complete(has_proxy, &mut problems);
        settings.store = Some(store);
        let files = settings.files(self);
        let own = self.path.iter().count();
        let read = self.path.as_ref().map(|_| file.text().as_bytes());
        let fingerprint = fingerprint(read, &files[own..]);
        settings.store = settings.store.and_then(|store| store.complete(&sources, &mut problems));
        settings.complete(builder.has_descriptors(), &mut problems);
        let envoy = settings.envoy().map(|(folder, algorithm)| envoy::load(folder, algorithm));
        let envoy = envoy.transpose().unwrap_or_else(|wrong| {
            problems.extend_from_slice(wrong.lines());
            None
        });
        let serves = begun.unwrap_or(&settings);
        let call_quotas = serves.grpc() != Listen::Off;
        let room = (serves.throttle_capacity, serves.throttle_when_full);
        let throttle = (serves.resp != Listen::Off).then_some(room);
        let additions = Additions { envoy: envoy.unwrap_or_default(), call_quotas, throttle };
        #[cfg(test)]
        tests::COMPILED.set(tests::COMPILED.get() + 1);
        if problems.is_empty() {
            let policy = additions.added_to(builder).map_err(Problems::from)?;
            return Ok((Config { file, additions, settings, fingerprint }, policy));
        }
        // Problems of the policy come first, since they have a place in the file.
        let policy = additions.added_to(builder.without_limits());
        Err(match policy {
            Ok(_) => problems.into(),
            Err(error) => Problems::from(error).and(problems),
        })
    }

    /// The values of all settings, and whether a proxy is asked for.
    fn tables(
        &self,
        tables: &mut Tables<'_, '_>,
        sources: &mut Sources<'_>,
    ) -> (Settings, StoreSettings, ProxySettings, bool) {
        let store = tables.store(|table| StoreSettings::resolve(sources, Some(table)));
        let proxy = tables.proxy(|table| ProxySettings::resolve(sources, Some(table)));
        let server = tables.server(|table| Settings::resolve(sources, Some(table)));
        let has_proxy = self.is_proxy || proxy.is_some();
        (
            server.unwrap_or_else(|| Settings::resolve(sources, None)),
            store.unwrap_or_else(|| StoreSettings::resolve(sources, None)),
            proxy.unwrap_or_else(|| ProxySettings::resolve(sources, None)),
            has_proxy,
        )
    }
}

impl Config {
    /// Compiles the policy once more, if a gate that had the first had to be given up.
    pub(crate) fn compile_again(&self) -> Result<Policy, spillgate_policy::Error> {
        self.additions.added_to(self.file.builder()?)
    }
}

impl Additions {
    /// Builds a policy that has these.
    pub(crate) fn added_to(
        &self,
        builder: PolicyBuilder,
    ) -> Result<Policy, spillgate_policy::Error> {
        let builder = if self.call_quotas { builder.call_quotas() } else { builder };
        let builder = self.envoy.domains.iter().cloned().fold(builder, PolicyBuilder::domain);
        let policy = builder.build()?;
        Ok(match self.throttle {
            Some((capacity, when_full)) => policy.with_throttle(capacity, when_full),
            None => policy,
        })
    }
}

/// A hash of the contents of files, the first of which may have been read already.
pub(crate) fn fingerprint(read: Option<&[u8]>, files: &[PathBuf]) -> u64 {
    // As much as a policy may have.
    const MEBIBYTES: u64 = 16;
    let mut hasher = DefaultHasher::new();
    if read.is_some() {
        read.hash(&mut hasher);
    }
    for file in files {
        read_file(file, MEBIBYTES).ok().as_deref().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static PARSED: Cell<u32> = const { Cell::new(0) };
        pub(super) static COMPILED: Cell<u32> = const { Cell::new(0) };
    }

    fn source(text: &str) -> (tempfile::TempDir, Source) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spillgate.toml");
        std::fs::write(&path, text).unwrap();
        (folder, Source { path: Some(path), ..Source::default() })
    }

    #[test]
    fn a_load_parses_and_compiles_once() {
        let (_folder, source) =
            source("[server]\ngrpc = '127.0.0.1:0'\n[[limit]]\nname = 'a'\nquota = '5/s'\n");
        for loads in 1..3 {
            let (config, policy) = source.load(None).unwrap();
            assert!(policy.limits().any(|limit| limit == "a"));
            assert_eq!((PARSED.get(), COMPILED.get()), (loads, loads));
            assert_eq!(config.fingerprint, fingerprint(None, &config.settings.files(&source)));
        }
    }

    #[test]
    fn problems_of_settings_and_of_the_policy_are_reported_together() {
        let (_folder, source) = source(
            "[server]\nhttp = '0.0.0.0:1'\ntls-cert = 'x'\n[store]\nnodes = 2\n\
             [[limit]]\nname = 'a'\nquota = '5/fortnight'\n",
        );
        let error = source.load(None).unwrap_err();
        let expected = ["fortnight", "store nodes", "tls-key", "there is no token"];
        assert_eq!(error.lines().len(), expected.len(), "{error}");
        for (problem, expected) in error.lines().iter().zip(expected) {
            assert!(problem.contains(expected), "{error}");
        }
    }
}
