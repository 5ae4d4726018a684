//! Tiers that a Python function assigns.
//!
//! It is called before the limiter is: what it raises propagates, it may use the limiter itself, and
//! no lock is held. The limiter then reads what it said.

use std::cell::Cell;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use spillgate_bindings::TierOf;

thread_local! {
    /// The tier of the caller that this thread is about to decide for.
    static TIER: Cell<Tier> = const { Cell::new(None) };
}

/// The place of a tier among the names; `None` is the limiter's own quota.
pub(crate) type Tier = Option<usize>;

/// The names of a limiter's tiers, and the function that assigns them.
pub(crate) struct Tiers {
    pub(crate) names: Vec<String>,
    pub(crate) tier_of: Py<PyAny>,
}

impl Tiers {
    /// The tier of a caller. A name that the limiter does not have is its own quota.
    pub(crate) fn of(&self, key: &Bound<'_, PyAny>) -> PyResult<Tier> {
        let tier = self.tier_of.bind(key.py()).call1((key,))?;
        if tier.is_none() {
            return Ok(None);
        }
        let Ok(name) = tier.cast::<PyString>() else {
            let kind = tier.get_type().name()?;
            let message = format!("tier_of returned a {kind}; return the name of a tier, or None");
            return Err(PyTypeError::new_err(message));
        };
        let name = name.to_str()?;
        Ok(self.names.iter().position(|known| known == name))
    }
}

/// Makes the next decision of this thread that of a caller of this tier.
pub(crate) fn enter(tier: Tier) {
    TIER.set(tier);
}

/// What limiters ask: the tier that was entered.
pub(crate) fn entered() -> TierOf {
    Box::new(|_key, _names| TIER.get())
}
