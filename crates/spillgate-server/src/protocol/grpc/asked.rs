//! What a call asks.

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use prost::Message;
use smallvec::SmallVec;
use spillgate::Quota;
use spillgate_policy::Descriptor;
use tonic::Status;

use super::bounds::{DESCRIPTORS, ENTRIES};
use crate::envoy;

/// A call that can be decided about.
pub(super) struct Asked {
    pub(super) request: RateLimitRequest,
    /// What comes with each descriptor.
    given: SmallVec<[Given; 4]>,
}

/// What comes with a descriptor.
#[derive(Clone, Copy)]
struct Given {
    hits: u64,
    gives_back: bool,
    /// A quota in place of what the policy says.
    quota: Option<Quota>,
    /// True if that stands for one that lets nothing through.
    is_closed: bool,
}

/// Keys and values of all descriptors, one after the other.
pub(super) type Entries<'a> = SmallVec<[(&'a str, &'a str); 8]>;

impl Asked {
    /// Reads a message.
    pub(super) fn decode(message: Bytes) -> Result<Self, Status> {
        let request = RateLimitRequest::decode(message)
            .map_err(|error| Status::invalid_argument(format!("the message is none: {error}")))?;
        if request.domain.is_empty() {
            return Err(Status::invalid_argument("rate limit domain must not be empty"));
        }
        if request.descriptors.is_empty() {
            return Err(Status::invalid_argument("rate limit descriptor list must not be empty"));
        }
        if request.descriptors.len() > DESCRIPTORS {
            let told = format!("a call may have {DESCRIPTORS} descriptors, and this one has more");
            return Err(Status::invalid_argument(told));
        }
        let of_call = u64::from(request.hits_addend.max(1));
        let given = request.descriptors.iter().map(|descriptor| Given::of(descriptor, of_call));
        let given = given.collect::<Result<_, _>>()?;
        Ok(Self { request, given })
    }

    /// The entries of all descriptors.
    pub(super) fn entries(&self) -> Entries<'_> {
        let entries = self.request.descriptors.iter().flat_map(|descriptor| &descriptor.entries);
        entries.map(|entry| (entry.key.as_str(), entry.value.as_str())).collect()
    }

    /// The descriptors, over the entries of all.
    pub(super) fn descriptors<'e>(
        &self,
        mut entries: &'e [(&'e str, &'e str)],
    ) -> SmallVec<[Descriptor<'e>; 4]> {
        let descriptor = |(asked, given): (&RateLimitDescriptor, &Given)| {
            let (own, rest) = entries.split_at(asked.entries.len().min(entries.len()));
            entries = rest;
            let Given { hits, gives_back, quota, .. } = *given;
            Descriptor { entries: own, hits, gives_back, quota }
        };
        self.request.descriptors.iter().zip(&self.given).map(descriptor).collect()
    }

    /// For each descriptor, whether it came with a limit that lets nothing through.
    pub(super) fn closed(&self) -> impl Iterator<Item = bool> {
        self.given.iter().map(|given| given.is_closed)
    }
}

impl Given {
    fn of(descriptor: &RateLimitDescriptor, of_call: u64) -> Result<Self, Status> {
        if descriptor.entries.len() > ENTRIES {
            let told = format!("a descriptor may have {ENTRIES} entries, and this one has more");
            return Err(Status::invalid_argument(told));
        }
        let own = descriptor.hits_addend.as_ref().map(|hits| hits.value);
        let (hits, gives_back) = (own.unwrap_or(of_call), descriptor.is_negative_hits);
        let Some(limit) = &descriptor.limit else {
            return Ok(Self { hits, gives_back, quota: None, is_closed: false });
        };
        let period = envoy::numbered(limit.unit)
            .ok_or_else(|| Status::invalid_argument("the limit's unit is not known"))?;
        let quota = envoy::quota(limit.requests_per_unit.max(1), period)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let given = Self { hits, gives_back, quota: Some(quota), is_closed: false };
        if limit.requests_per_unit > 0 {
            return Ok(given);
        }
        // It is asked for more than there can ever be, so that the call is denied as any other
        // is. There is nothing to give back.
        let hits = if hits > 0 && !gives_back { u64::MAX } else { 0 };
        Ok(Self { hits, gives_back: false, is_closed: true, ..given })
    }
}
