use std::sync::atomic::{AtomicU64, Ordering};

use tonic::Code;

#[derive(Debug, Default)]
pub(super) struct GrpcStats {
    calls: [AtomicU64; CODES.len()],
    descriptors: [AtomicU64; RESULTS.len()],
}

/// What became of a descriptor. All but `Denied` pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DescriptorResult {
    UnknownDomain,
    UnknownDescriptor,
    Unlimited,
    Allowed,
    Denied,
    ShadowDenied,
    /// A limit in quota mode is exceeded, as the response says.
    QuotaExceeded,
}

/// In the order of the variants.
const RESULTS: [&str; 7] = [
    "unknown-domain",
    "unknown-descriptor",
    "unlimited",
    "allowed",
    "denied",
    "shadow-denied",
    "quota-exceeded",
];

/// In the order of their numbers.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

// Relaxed throughout: counts order nothing.
impl GrpcStats {
    /// Calls of the rate-limit service by code, without errors that did not happen.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.calls.iter().map(|count| count.load(Ordering::Relaxed));
        CODES.into_iter().zip(counts).filter(|(code, count)| *count > 0 || *code == CODES[0])
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RESULTS.into_iter().zip(self.descriptors.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    pub(super) fn count_call(&self, code: Code) {
        if let Some(count) = self.calls.get(code as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_descriptor(&self, result: DescriptorResult) {
        self.descriptors[result as usize].fetch_add(1, Ordering::Relaxed);
    }
}
