use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use spillgate_policy::{Policy, PolicyBuilder, PolicyFile};

use super::value::LimitQuota;
use super::{ConfigError, Given, Listen, Settings};
use crate::envoy;

/// Where a server is told what to do. It is asked at the start, and at every reload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// The file, if there is one.
    pub(crate) path: Option<PathBuf>,
    /// The quota of the only limit, if there is no file.
    pub(crate) limit: Option<LimitQuota>,
    /// What flags and environment say, which goes before the file.
    pub(crate) flags: Given,
    /// What holds where nothing is said.
    pub(crate) fallback: Given,
}

/// What a server is told.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file's text, or the example's.
    pub(crate) file: PolicyFile,
    pub(crate) policy: Policy,
    pub(crate) additions: Additions,
    pub(crate) settings: Settings,
}

/// What a policy has that its file does not tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Additions {
    /// What files of envoyproxy/ratelimit say.
    pub(crate) envoy: envoy::Folder,
    /// Room for quotas that come with calls.
    call_quotas: bool,
}

/// The policy of a server that is given none.
const EXAMPLE: &str = include_str!("example.toml");

impl Source {
    /// Reads what the server is to do.
    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        let file = match (&self.path, &self.limit) {
            (Some(path), _) => PolicyFile::read(path)?,
            (None, Some(quota)) => PolicyFile::from_text(quota.policy()),
            (None, None) => PolicyFile::from_text(EXAMPLE),
        };
        let (policy, told) = file.decode(Given::decode)?;
        let folder = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let told = told.beside(folder);
        let has_descriptors = policy.domains().next().is_some();
        let settings =
            Settings::new(self.flags.clone().or(told).or(self.fallback.clone()), has_descriptors)?;
        let envoy = match &settings.envoy {
            Some((folder, algorithm)) => envoy::load(folder, *algorithm)?,
            None => envoy::Folder::default(),
        };
        let additions = Additions { envoy, call_quotas: settings.grpc != Listen::Off };
        let policy = additions.added_to(file.builder()?)?;
        Ok(Config { file, policy, additions, settings })
    }
}

impl Config {
    /// The policy, once more.
    pub(crate) fn policy(&self) -> Result<Policy, spillgate_policy::Error> {
        self.additions.added_to(self.file.builder()?)
    }

    /// The same with room for quotas that come with calls, which clients of a listener may
    /// bring although nothing else speaks of descriptors any more.
    pub(crate) fn with_call_quotas(mut self) -> Result<Self, spillgate_policy::Error> {
        if !self.additions.call_quotas {
            self.additions.call_quotas = true;
            self.policy = self.policy()?;
        }
        Ok(self)
    }
}

impl Additions {
    /// Builds a policy that has these.
    pub(crate) fn added_to(
        &self,
        builder: PolicyBuilder,
    ) -> Result<Policy, spillgate_policy::Error> {
        let builder = if self.call_quotas { builder.call_quotas() } else { builder };
        self.envoy.domains.iter().cloned().fold(builder, PolicyBuilder::domain).build()
    }
}

/// Reads a small file, such as a key. What is longer than a mebibyte is none.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    read_file(path, 1)
}

/// Reads a file of at most so many mebibytes.
pub(crate) fn read_file(path: &Path, mebibytes: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: to open a pipe is to wait for someone at its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let (mut bytes, most) = (Vec::new(), mebibytes << 20);
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {mebibytes} MiB")));
    }
    Ok(bytes)
}
