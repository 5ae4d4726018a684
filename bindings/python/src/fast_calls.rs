//! `Limiter.allow` and `Limiter.check` as CPython itself would define them.
//!
//! What PyO3 does around every method takes longer than the decision. These two are called on every
//! request, so that they read their arguments themselves. Calls with keywords, and those of limiters
//! with tiers, go to the methods that PyO3 has made.

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PySystemError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyTuple};
use pyo3::{PyTypeInfo, ffi};

use crate::decision::Decision;
use crate::key::with_key;
use crate::limiter::Limiter;

/// A method that is defined here, in place of the one of the same name.
struct FastMethod {
    name: &'static str,
    definition: Definition,
    /// The method that takes its place for other calls.
    general: PyOnceLock<Py<PyAny>>,
}

#[repr(transparent)]
struct Definition(ffi::PyMethodDef);

#[expect(unsafe_code, reason = "CPython reads it, and nobody writes to it")]
// SAFETY: it consists of pointers to static texts and functions.
unsafe impl Sync for Definition {}

impl FastMethod {
    const fn new(
        name: &'static str,
        text: &'static CStr,
        method: ffi::PyCFunctionFastWithKeywords,
        doc: &'static CStr,
    ) -> Self {
        let definition = ffi::PyMethodDef {
            ml_name: text.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: method },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS as c_int,
            ml_doc: doc.as_ptr(),
        };
        Self { name, definition: Definition(definition), general: PyOnceLock::new() }
    }
}

static ALLOW: FastMethod = FastMethod::new(
    "allow",
    c"allow",
    allow,
    c"allow($self, key, cost=1)\n--\n\n`check` without a `Decision`: the fastest call.",
);

static CHECK: FastMethod = FastMethod::new(
    "check",
    c"check",
    check,
    c"check($self, key, cost=1)\n--\n\nSpends `cost` if all of it is available now.",
);

/// Puts them in place.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let class = Limiter::type_object(py);
    for method in [&ALLOW, &CHECK] {
        let general = class.getattr(method.name)?.unbind();
        if method.general.set(py, general).is_err() {
            return Ok(());
        }
        let definition = (&raw const method.definition.0).cast_mut();
        #[expect(unsafe_code, reason = "what PyO3 has no function for")]
        // SAFETY: the class is alive, and the definition is static. The result is a new reference.
        let descriptor = unsafe {
            let made = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
            Bound::from_owned_ptr_or_err(py, made)?
        };
        class.setattr(method.name, descriptor)?;
    }
    Ok(())
}

#[expect(unsafe_code, reason = "the calling convention of CPython")]
unsafe extern "C" fn allow(
    limiter: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it as a method of a limiter, with these arguments, attached.
    unsafe {
        call(&ALLOW, (limiter, arguments, count, keywords), |py, decision| {
            Ok(PyBool::new(py, decision.is_allowed()).to_owned().into_ptr())
        })
    }
}

#[expect(unsafe_code, reason = "the calling convention of CPython")]
unsafe extern "C" fn check(
    limiter: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe {
        call(&CHECK, (limiter, arguments, count, keywords), |py, decision| {
            Ok(Bound::new(py, Decision(decision))?.into_ptr())
        })
    }
}

/// What CPython passes: the object, its arguments and how many of them are positional, and the names
/// of the others.
type Call = (*mut ffi::PyObject, *const *mut ffi::PyObject, ffi::Py_ssize_t, *mut ffi::PyObject);

/// # Safety
///
/// The thread is attached, the object is a limiter, and the rest is as CPython says.
#[inline(always)]
#[expect(unsafe_code, reason = "the calling convention of CPython")]
unsafe fn call(
    method: &FastMethod,
    (limiter, arguments, count, keywords): Call,
    shown: impl FnOnce(Python<'_>, spillgate::Decision) -> PyResult<*mut ffi::PyObject>,
) -> *mut ffi::PyObject {
    // SAFETY: the caller says so. What is borrowed lives as long as the call.
    let (py, object, arguments) = unsafe {
        let py = Python::assume_attached();
        let names = if keywords.is_null() { 0 } else { ffi::PyTuple_Size(keywords) };
        let arguments: &[Py<PyAny>] = match (count + names).unsigned_abs() {
            // The pointer may be null.
            0 => &[],
            length => std::slice::from_raw_parts(arguments.cast(), length),
        };
        (py, Borrowed::from_ptr(py, limiter), arguments)
    };
    // SAFETY: a descriptor checks that it is one.
    let limiter = unsafe { object.cast_unchecked::<Limiter>() };
    let decide = || {
        let limiter = limiter.get();
        let decision = match arguments {
            [key] if keywords.is_null() && limiter.tiers.is_none() => {
                with_key(key.bind(py), |key| limiter.inner.check_n(key, 1))?
            }
            [key, cost] if keywords.is_null() && limiter.tiers.is_none() => {
                let cost = cost.bind(py).extract()?;
                with_key(key.bind(py), |key| limiter.inner.check_n(key, cost))?
            }
            _ => {
                // SAFETY: null, or a tuple of names.
                let names = unsafe { Bound::from_borrowed_ptr_or_opt(py, keywords) };
                return general(method, object.to_owned(), arguments, names);
            }
        };
        shown(py, decision)
    };
    match catch_unwind(AssertUnwindSafe(decide)) {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => raise(error),
        Err(_) => raise(PySystemError::new_err("a fault in the native module of spillgate")),
    }
}

/// PyO3 does not know that these calls are attached, and would keep the parts of the error for later.
#[cold]
fn raise(error: PyErr) -> *mut ffi::PyObject {
    Python::attach(|py| error.restore(py));
    std::ptr::null_mut()
}

/// Calls the method that PyO3 has made.
#[cold]
#[inline(never)]
fn general(
    method: &FastMethod,
    limiter: Bound<'_, PyAny>,
    arguments: &[Py<PyAny>],
    names: Option<Bound<'_, PyAny>>,
) -> PyResult<*mut ffi::PyObject> {
    let py = limiter.py();
    let Some(general) = method.general.get(py) else {
        return Err(PySystemError::new_err("the native module of spillgate is not initialised"));
    };
    let names = names.map(Bound::cast_into::<PyTuple>).transpose()?;
    let (positional, named) =
        arguments.split_at(arguments.len() - names.as_ref().map_or(0, PyTupleMethods::len));
    let keywords = PyDict::new(py);
    for (name, value) in names.iter().flatten().zip(named) {
        keywords.set_item(name, value)?;
    }
    let positional = positional.iter().map(|argument| argument.bind(py).clone());
    let all = PyTuple::new(py, std::iter::once(limiter).chain(positional).collect::<Vec<_>>())?;
    Ok(general.bind(py).call(all, Some(&keywords))?.into_ptr())
}
