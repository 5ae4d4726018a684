//! The part that is written in Python: coroutines.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// A function of `spillgate._aio`.
pub(crate) fn function<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let import = || Ok::<_, PyErr>(py.import("spillgate._aio")?.unbind());
    MODULE.get_or_try_init(py, import)?.bind(py).getattr(name)
}
