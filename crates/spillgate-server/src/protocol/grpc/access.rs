//! Who is let in.

use std::net::IpAddr;

use http::header::AUTHORIZATION;
use http::request::Parts;
use tonic::Status;

use crate::Access;

/// Refuses whoever is neither on this machine nor known, and has no token.
pub(super) fn admit(access: &Access, peer: Option<IpAddr>, head: &Parts) -> Result<(), Status> {
    if peer.is_some_and(|peer| access.takes_grpc_from(peer)) {
        return Ok(());
    }
    let mut given = head.headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (given.next(), given.next());
    let token = first.filter(|_| second.is_none()).and_then(|given| given.to_str().ok());
    let token = token.and_then(|given| given.split_once(' '));
    match token.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer")) {
        Some((_, token)) if access.knows(token.trim().as_bytes()) => Ok(()),
        Some(_) => Err(Status::unauthenticated("invalid token")),
        None => Err(Status::unauthenticated(
            "missing token: send authorization: Bearer TOKEN, or add this address to grpc-allow",
        )),
    }
}
