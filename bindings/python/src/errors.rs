use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, create_exception, import_exception};

create_exception!(
    spillgate,
    SpillgateError,
    PyValueError,
    "A quota, a policy, a request or a setting is invalid. The text says what would be right."
);

create_exception!(
    spillgate,
    InvalidRequest,
    SpillgateError,
    "A request has a method, a path, a header, a peer or a caller that is invalid."
);

// In Python, since its exceptions keep the decision.
import_exception!(spillgate.errors, RateLimited);

/// An error with the text of the library.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn invalid(error: impl ToString) -> PyErr {
    SpillgateError::new_err(error.to_string())
}
