use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

use super::routes::Operation;

/// What clients have done over HTTP so far.
#[derive(Debug)]
pub struct HttpStats {
    /// By route and class of status; the last is for requests without a route.
    requests: [[AtomicU64; CLASSES.len()]; ROUTES],
}

const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];
const ROUTES: usize = Operation::ALL.len() + 1;

// Relaxed throughout: counts order nothing.
impl HttpStats {
    /// Requests by route and status class, such as `("check", "2xx", 7)`, without zeros.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let names = Operation::ALL.iter().map(|operation| operation.name()).chain(["none"]);
        let counts = names.zip(&self.requests).flat_map(|(name, classes)| {
            let count = move |(class, count): (&&'static str, &AtomicU64)| {
                (name, *class, count.load(Ordering::Relaxed))
            };
            CLASSES.iter().zip(classes).map(count)
        });
        counts.filter(|(_, _, count)| *count > 0)
    }

    pub(super) fn count(&self, operation: Option<Operation>, status: StatusCode) {
        let route = operation.map_or(ROUTES - 1, |operation| operation as usize);
        let class = usize::from(status.as_u16() / 100).saturating_sub(2).min(CLASSES.len() - 1);
        self.requests[route][class].fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for HttpStats {
    fn default() -> Self {
        Self { requests: std::array::from_fn(|_| Default::default()) }
    }
}
