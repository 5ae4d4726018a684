use std::sync::atomic::{AtomicU64, Ordering};

use tonic::Code;

/// What clients have done over gRPC so far.
#[derive(Debug, Default)]
pub struct GrpcStats {
    /// By code.
    calls: [AtomicU64; CODES.len()],
    /// By outcome.
    descriptors: [AtomicU64; DescriptorResult::ALL.len()],
}

/// What became of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorResult {
    /// Nothing is known of its domain, so it passes.
    UnknownDomain,
    /// No limit matches it, so it passes.
    UnknownDescriptor,
    /// It is known, and not limited.
    Unlimited,
    /// It passes.
    Allowed,
    /// It does not pass.
    Denied,
    /// It passes, since the limit that it exceeds is in shadow.
    ShadowDenied,
    /// It passes, and whoever asked is told that it exceeds its limit.
    QuotaExceeded,
}

impl DescriptorResult {
    const ALL: [(Self, &'static str); 7] = [
        (Self::UnknownDomain, "unknown-domain"),
        (Self::UnknownDescriptor, "unknown-descriptor"),
        (Self::Unlimited, "unlimited"),
        (Self::Allowed, "allowed"),
        (Self::Denied, "denied"),
        (Self::ShadowDenied, "shadow-denied"),
        (Self::QuotaExceeded, "quota-exceeded"),
    ];
}

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
    /// How many calls of the rate-limit service ended with which code. Errors that did not
    /// happen are left out.
    pub fn calls(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.calls.iter().map(|count| count.load(Ordering::Relaxed));
        CODES.into_iter().zip(counts).filter(|(code, count)| *count > 0 || *code == CODES[0])
    }

    /// How many descriptors had which outcome.
    pub fn descriptors(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.descriptors.iter().map(|count| count.load(Ordering::Relaxed));
        DescriptorResult::ALL.into_iter().map(|(_, name)| name).zip(counts)
    }

    pub(super) fn count_call(&self, code: Code) {
        if let Some(count) = self.calls.get(code as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_descriptor(&self, outcome: DescriptorResult) {
        self.descriptors[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}
