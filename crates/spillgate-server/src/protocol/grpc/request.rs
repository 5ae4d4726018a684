//! What a call asks.

use bytes::Bytes;
use prost::Message;
use smallvec::SmallVec;
use spillgate::Quota;
use spillgate_policy::Descriptor;
use tonic::Status;

use super::messages::{RateLimitDescriptor, RateLimitRequest};
use super::{DESCRIPTORS, ENTRIES};
use crate::envoy;

/// A call, checked.
pub(crate) struct DecodedRequest {
    pub(crate) message: RateLimitRequest,
    args: SmallVec<[DescriptorArgs; 4]>,
}

#[derive(Clone, Copy)]
struct DescriptorArgs {
    hits: u64,
    gives_back: bool,
    /// A quota in place of what the policy says.
    quota: Option<Quota>,
    /// True if that stands for one that lets nothing through.
    is_closed: bool,
}

/// Keys and values of all descriptors, one after the other.
pub(crate) type Entries<'a> = SmallVec<[(&'a str, &'a str); 8]>;

impl DecodedRequest {
    pub(super) fn decode(message: Bytes) -> Result<Self, Status> {
        let message = RateLimitRequest::decode(message).map_err(|error| {
            Status::invalid_argument(format!("failed to decode request: {error}"))
        })?;
        Self::new(message)
    }

    pub(crate) fn new(message: RateLimitRequest) -> Result<Self, Status> {
        if message.domain.is_empty() {
            return Err(Status::invalid_argument("rate limit domain must not be empty"));
        }
        if message.descriptors.is_empty() {
            return Err(Status::invalid_argument("rate limit descriptor list must not be empty"));
        }
        if message.descriptors.len() > DESCRIPTORS {
            let message = format!("too many descriptors: at most {DESCRIPTORS} per call");
            return Err(Status::invalid_argument(message));
        }
        let of_call = u64::from(message.hits_addend.max(1));
        let args =
            message.descriptors.iter().map(|descriptor| DescriptorArgs::of(descriptor, of_call));
        let args = args.collect::<Result<_, _>>()?;
        Ok(Self { message, args })
    }

    pub(crate) fn entries(&self) -> Entries<'_> {
        let entries = self.message.descriptors.iter().flat_map(|descriptor| &descriptor.entries);
        entries.map(|entry| (entry.key.as_str(), entry.value.as_str())).collect()
    }

    pub(crate) fn descriptors<'e>(
        &self,
        mut entries: &'e [(&'e str, &'e str)],
    ) -> SmallVec<[Descriptor<'e>; 4]> {
        let descriptor = |(descriptor, args): (&RateLimitDescriptor, &DescriptorArgs)| {
            let (own, rest) = entries.split_at(descriptor.entries.len().min(entries.len()));
            entries = rest;
            let DescriptorArgs { hits, gives_back, quota, .. } = *args;
            Descriptor { entries: own, hits, gives_back, quota }
        };
        self.message.descriptors.iter().zip(&self.args).map(descriptor).collect()
    }

    /// For each descriptor, whether it came with a limit that lets nothing through.
    pub(crate) fn closed(&self) -> impl Iterator<Item = bool> {
        self.args.iter().map(|args| args.is_closed)
    }
}

impl DescriptorArgs {
    fn of(descriptor: &RateLimitDescriptor, of_call: u64) -> Result<Self, Status> {
        if descriptor.entries.len() > ENTRIES {
            let message = format!("too many entries: at most {ENTRIES} per descriptor");
            return Err(Status::invalid_argument(message));
        }
        let hits = descriptor.hits_addend.unwrap_or(of_call);
        let gives_back = descriptor.is_negative_hits;
        let Some(limit) = &descriptor.limit else {
            return Ok(Self { hits, gives_back, quota: None, is_closed: false });
        };
        let period = envoy::numbered(limit.unit)
            .ok_or_else(|| Status::invalid_argument("unknown unit of the descriptor's limit"))?;
        let quota = envoy::quota(limit.requests_per_unit.max(1), period)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let args = Self { hits, gives_back, quota: Some(quota), is_closed: false };
        if limit.requests_per_unit > 0 {
            return Ok(args);
        }
        // It asks for more than there can be, so that the call is denied like any other.
        let hits = if hits > 0 && !gives_back { u64::MAX } else { 0 };
        Ok(Self { hits, gives_back: false, is_closed: true, ..args })
    }
}
