use std::fmt;

/// All problems of a configuration, one per line.
#[derive(Debug)]
pub(crate) struct ConfigError(Vec<String>);

impl ConfigError {
    pub(super) fn new(problems: Vec<String>) -> Self {
        Self(problems)
    }

    pub(crate) fn problems(&self) -> &[String] {
        &self.0
    }

    /// The same, and more.
    pub(super) fn and(mut self, problems: Vec<String>) -> Self {
        self.0.extend(problems);
        self
    }
}

impl From<spillgate_policy::Error> for ConfigError {
    fn from(error: spillgate_policy::Error) -> Self {
        Self(error.to_string().lines().map(str::to_owned).collect())
    }
}

impl From<crate::envoy::Problems> for ConfigError {
    fn from(problems: crate::envoy::Problems) -> Self {
        Self(problems.lines().to_vec())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
