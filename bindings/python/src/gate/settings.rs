use pyo3::prelude::*;
use spillgate_enforce::{Enforcer, Headers, OnStoreError};
use spillgate_policy::store::Store;

use crate::errors::invalid;

/// What an enforcer is told besides its gate.
#[derive(Clone, Copy)]
pub(super) struct Enforcing {
    on_store_error: OnStoreError,
    headers: Headers,
}

impl Enforcing {
    pub(super) fn new(on_store_error: &str, headers: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let on_store_error = match on_store_error {
            "refuse" => OnStoreError::Refuse,
            "allow" => OnStoreError::Allow,
            other => {
                let message = format!("unknown on_store_error {other:?}; use one of refuse, allow");
                return Err(invalid(message));
            }
        };
        let Some(headers) = headers else {
            return Ok(Self { on_store_error, headers: Headers::default() });
        };
        let mut chosen = Headers::none();
        for family in headers.try_iter()? {
            let family: String = family?.extract()?;
            chosen = match family.as_str() {
                "rate-limit" => chosen.rate_limit(true),
                "x-rate-limit" => chosen.x_rate_limit(true),
                "retry-after-ms" => chosen.retry_after_ms(true),
                other => {
                    return Err(invalid(format!(
                        "unknown headers {other:?}; use some of rate-limit, x-rate-limit, \
                         retry-after-ms"
                    )));
                }
            };
        }
        Ok(Self { on_store_error, headers: chosen })
    }

    pub(super) fn apply<S: Store>(self, enforcer: Enforcer<S>) -> Enforcer<S> {
        // Nobody would read the log: it is written for programs that collect `tracing` events.
        enforcer.on_store_error(self.on_store_error).headers(self.headers).log(false)
    }
}
