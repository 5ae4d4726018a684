use std::path::PathBuf;

use pyo3::prelude::*;
use spillgate_policy::{Error, PolicyBuilder};

use crate::errors::invalid;

/// A policy file that has been checked.
#[pyclass(frozen, module = "spillgate")]
pub(crate) struct Policy {
    pub(super) source: Source,
    /// The names of the limits, in the order of the file.
    #[pyo3(get)]
    limits: Vec<String>,
}

/// What a policy is compiled from: by every gate for itself, and again in the child of a fork.
#[derive(Clone)]
pub(super) struct Source {
    text: String,
    folder: PathBuf,
    names_callers: bool,
}

#[pymethods]
impl Policy {
    /// A policy from the text of a file. Files that it names are looked for in the folder.
    #[new]
    #[pyo3(signature = (toml, *, folder=None, names_callers=false))]
    fn new(toml: String, folder: Option<PathBuf>, names_callers: bool) -> PyResult<Self> {
        Self::checked(Source { text: toml, folder: folder.unwrap_or_default(), names_callers })
    }

    /// A policy from a file. Files that it names are relative to its folder.
    #[staticmethod]
    #[pyo3(signature = (path, *, names_callers=false))]
    #[expect(clippy::needless_pass_by_value, reason = "made from a Python object")]
    fn load(path: PathBuf, names_callers: bool) -> PyResult<Self> {
        // Reads it with all limits on what is a file, and names the file in what is wrong.
        let builder = PolicyBuilder::load(&path).map_err(invalid)?;
        complete(builder, names_callers).build().map_err(invalid)?;
        let text = std::fs::read_to_string(&path)?;
        let folder = path.parent().map(Into::into).unwrap_or_default();
        Self::checked(Source { text, folder, names_callers })
    }

    fn __repr__(&self) -> String {
        format!("Policy(limits={:?})", self.limits)
    }
}

impl Policy {
    fn checked(source: Source) -> PyResult<Self> {
        let policy = source.compile().map_err(invalid)?;
        let limits = policy.limits().map(ToOwned::to_owned).collect();
        Ok(Self { source, limits })
    }
}

impl Source {
    pub(super) fn compile(&self) -> Result<spillgate_policy::Policy, Error> {
        let builder = PolicyBuilder::from_toml_in(&self.text, &self.folder)?;
        complete(builder, self.names_callers).build()
    }
}

fn complete(builder: PolicyBuilder, names_callers: bool) -> PolicyBuilder {
    if names_callers { builder.names_callers() } else { builder }
}

/// A policy, or the text of one.
#[derive(FromPyObject)]
pub(crate) enum PolicyOrText<'py> {
    Policy(Bound<'py, Policy>),
    Text(String),
}

impl PolicyOrText<'_> {
    pub(super) fn source(self) -> PyResult<Source> {
        match self {
            Self::Policy(policy) => Ok(policy.get().source.clone()),
            Self::Text(text) => Ok(Policy::new(text, None, false)?.source),
        }
    }
}
