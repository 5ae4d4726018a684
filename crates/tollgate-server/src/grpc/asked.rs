//! What a call asks.

use std::time::Duration;

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use prost::Message;
use smallvec::SmallVec;
use tollgate::Quota;
use tollgate_policy::Descriptor;
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
pub(super) struct Given {
    hits: u64,
    gives_back: bool,
    limit: Option<Limit>,
}

/// A limit that comes with a descriptor, in place of what the policy says.
#[derive(Clone, Copy)]
enum Limit {
    Quota(Quota),
    /// It lets nothing through in this time, or in any other.
    Closed(Duration),
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
    ///
    /// If one of them is never let through, none is spent on, so that the others only look.
    pub(super) fn descriptors<'e>(
        &self,
        mut entries: &'e [(&'e str, &'e str)],
    ) -> SmallVec<[Descriptor<'e>; 4]> {
        let only_looks = self.closed().next().is_some();
        let descriptor = |(asked, given): (&RateLimitDescriptor, &Given)| {
            let (own, rest) = entries.split_at(asked.entries.len().min(entries.len()));
            entries = rest;
            Descriptor {
                entries: own,
                hits: if only_looks { 0 } else { given.hits },
                gives_back: given.gives_back && !only_looks,
                quota: match given.limit {
                    Some(Limit::Quota(quota)) => Some(quota),
                    Some(Limit::Closed(_)) | None => None,
                },
            }
        };
        self.request.descriptors.iter().zip(&self.given).map(descriptor).collect()
    }

    /// The places of descriptors that come with a limit which lets nothing through, and its
    /// period.
    pub(super) fn closed(&self) -> impl Iterator<Item = (usize, Duration)> {
        self.given.iter().enumerate().filter_map(|(place, given)| match given.limit {
            Some(Limit::Closed(period)) if given.hits > 0 && !given.gives_back => {
                Some((place, period))
            }
            _ => None,
        })
    }
}

impl Given {
    fn of(descriptor: &RateLimitDescriptor, of_call: u64) -> Result<Self, Status> {
        if descriptor.entries.len() > ENTRIES {
            let told = format!("a descriptor may have {ENTRIES} entries, and this one has more");
            return Err(Status::invalid_argument(told));
        }
        let limit = match &descriptor.limit {
            None => None,
            Some(limit) => {
                let period = envoy::numbered(limit.unit)
                    .ok_or_else(|| Status::invalid_argument("the limit's unit is not known"))?;
                Some(match limit.requests_per_unit {
                    0 => Limit::Closed(period),
                    amount => {
                        let quota = envoy::quota(amount, period);
                        Limit::Quota(
                            quota.map_err(|error| Status::invalid_argument(error.to_string()))?,
                        )
                    }
                })
            }
        };
        let own = descriptor.hits_addend.as_ref().map(|hits| hits.value);
        let gives_back = descriptor.is_negative_hits;
        Ok(Self { hits: own.unwrap_or(of_call), gives_back, limit })
    }
}
