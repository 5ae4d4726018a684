//! Keys as bytes. A `str` is its UTF-8; every other key begins with a byte that UTF-8 never has, and
//! a byte for its type. So keys of different types never collide, and those that are mostly used are
//! not copied.

use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString, PyTuple, PyType};
use smallvec::SmallVec;

/// The bytes of a key that is not text.
pub(crate) type Encoded = SmallVec<[u8; 64]>;

/// Begins every key that is not text.
const NOT_TEXT: u8 = 0xFF;

const BYTES: u8 = b'b';
const INT: u8 = b'i';
const LARGE_INT: u8 = b'I';
const IPV4: u8 = b'4';
const IPV6: u8 = b'6';
const TUPLE: u8 = b't';

/// How deep tuples may be nested.
const DEEPEST: usize = 16;

/// Calls a function with the bytes of a key.
#[inline(always)]
pub(crate) fn with_key<T>(key: &Bound<'_, PyAny>, call: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    let encoded;
    let bytes = match key.cast::<PyString>() {
        Ok(text) => text.to_str()?.as_bytes(),
        Err(_) => {
            // Callers may be attached without PyO3's knowledge, which keeps what is dropped then for later.
            encoded = Python::attach(|_| encode(key))?;
            &encoded
        }
    };
    Ok(call(bytes))
}

/// The bytes of a key.
#[cold]
#[inline(never)]
pub(crate) fn encode(key: &Bound<'_, PyAny>) -> PyResult<Encoded> {
    let mut bytes = Encoded::new();
    write(key, &mut bytes, 0)?;
    Ok(bytes)
}

fn write(key: &Bound<'_, PyAny>, out: &mut Encoded, depth: usize) -> PyResult<()> {
    if let Ok(text) = key.cast::<PyString>() {
        out.extend_from_slice(text.to_str()?.as_bytes());
    } else if let Ok(bytes) = key.cast::<PyBytes>() {
        put(out, BYTES, bytes.as_bytes());
    } else if let Ok(number) = key.cast::<PyInt>()
        && !key.is_instance_of::<PyBool>()
    {
        write_int(number, out)?;
    } else if let Ok(parts) = key.cast::<PyTuple>() {
        write_tuple(parts, out, depth)?;
    } else {
        write_address(key, out)?;
    }
    Ok(())
}

fn put(out: &mut Encoded, kind: u8, bytes: &[u8]) {
    out.extend_from_slice(&[NOT_TEXT, kind]);
    out.extend_from_slice(bytes);
}

fn write_int(number: &Bound<'_, PyInt>, out: &mut Encoded) -> PyResult<()> {
    match number.extract::<i64>() {
        Ok(small) => put(out, INT, &small.to_le_bytes()),
        // `int.__repr__` by way of the type: a subclass may show itself otherwise.
        Err(_) => {
            let digits = PyInt::type_object(number.py()).call_method1("__repr__", (number,))?;
            put(out, LARGE_INT, digits.cast::<PyString>()?.to_str()?.as_bytes());
        }
    }
    Ok(())
}

/// The parts, each after its length, so that no two tuples have the same bytes.
fn write_tuple(parts: &Bound<'_, PyTuple>, out: &mut Encoded, depth: usize) -> PyResult<()> {
    if depth == DEEPEST {
        let message = format!("a key has tuples nested more than {DEEPEST} deep");
        return Err(PyTypeError::new_err(message));
    }
    put(out, TUPLE, &[]);
    for part in parts.iter_borrowed() {
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        write(&part, out, depth + 1)?;
        let length = (out.len() - start - 8) as u64;
        if let Some(place) = out.get_mut(start..start + 8) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }
    Ok(())
}

/// An address. One of IPv6 that stands for one of IPv4 is that, as everywhere in Spillgate.
fn write_address(key: &Bound<'_, PyAny>, out: &mut Encoded) -> PyResult<()> {
    static V4: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static V6: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = key.py();
    if key.is_instance(V4.import(py, "ipaddress", "IPv4Address")?)? {
        let packed = key.getattr("packed")?;
        put(out, IPV4, packed.cast::<PyBytes>()?.as_bytes());
    } else if key.is_instance(V6.import(py, "ipaddress", "IPv6Address")?)? {
        let mapped = key.getattr("ipv4_mapped")?;
        if !mapped.is_none() {
            return write_address(&mapped, out);
        }
        let packed = key.getattr("packed")?;
        put(out, IPV6, packed.cast::<PyBytes>()?.as_bytes());
        if let Some(scope) = key.getattr("scope_id")?.extract::<Option<String>>()? {
            out.extend_from_slice(scope.as_bytes());
        }
    } else {
        return Err(unusable(key));
    }
    Ok(())
}

fn unusable(key: &Bound<'_, PyAny>) -> PyErr {
    let kind = key.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "a key of type {kind}; use str, bytes, int, an IPv4Address, an IPv6Address, or a tuple of these"
    ))
}
