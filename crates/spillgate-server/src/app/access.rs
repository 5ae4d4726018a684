use std::net::IpAddr;

use ipnet::IpNet;

use crate::Secret;

/// Access rules.
///
/// | | on loopback | elsewhere |
/// |---|---|---|
/// | `/healthz`, `/readyz`, gRPC `Health/Check` | anyone | anyone |
/// | `/auth` | proxies | proxies |
/// | `/metrics` | anyone | token, or anyone if [open](Self::open_metrics) |
/// | gRPC | anyone | token, or [allowed](Self::grpc_from) address |
/// | `/v1/check`, `/v1/reserve`, `/v1/settle` and everything that is not listed | anyone | token |
/// | policy, limits, keys, overrides, lists, explain | token | token |
///
/// Proxies are those that the policy trusts, and those of [`auth_from`](Self::auth_from).
#[derive(Clone, Debug)]
pub struct Access {
    token: Option<Secret>,
    is_loopback: bool,
    hosts: Vec<String>,
    auth_from: Vec<IpNet>,
    grpc_from: Vec<IpNet>,
    metrics_are_open: bool,
    resp_password: Option<Secret>,
    resp_password_is_required: bool,
}

impl Access {
    /// For a server that listens on loopback.
    #[must_use]
    pub fn loopback(token: Option<Secret>) -> Self {
        let loopback = ["127.0.0.0/8", "::1/128"];
        Self {
            token,
            is_loopback: true,
            hosts: Vec::new(),
            auth_from: loopback.iter().filter_map(|range| range.parse().ok()).collect(),
            grpc_from: Vec::new(),
            metrics_are_open: false,
            resp_password: None,
            resp_password_is_required: false,
        }
    }

    /// For a server that other machines can reach.
    #[must_use]
    pub fn network(token: Secret) -> Self {
        Self { is_loopback: false, ..Self::loopback(Some(token)) }
    }

    /// Accepts these host names, too. A server on loopback accepts `localhost` and its addresses,
    /// another one all addresses.
    #[must_use]
    pub fn hosts<T: Into<String>>(self, hosts: impl IntoIterator<Item = T>) -> Self {
        Self { hosts: hosts.into_iter().map(Into::into).collect(), ..self }
    }

    /// Allows these proxies to call `/auth`, besides those that the policy trusts. Default:
    /// loopback.
    #[must_use]
    pub fn auth_from(self, ranges: impl IntoIterator<Item = IpNet>) -> Self {
        Self { auth_from: ranges.into_iter().collect(), ..self }
    }

    /// Allows these gRPC clients without the token, besides those on loopback.
    #[must_use]
    pub fn grpc_from(self, ranges: impl IntoIterator<Item = IpNet>) -> Self {
        Self { grpc_from: ranges.into_iter().collect(), ..self }
    }

    /// Serves metrics without the token.
    #[must_use]
    pub fn open_metrics(self, open: bool) -> Self {
        Self { metrics_are_open: open, ..self }
    }

    /// Sets the password of the Redis protocol, optional or required.
    #[must_use]
    pub fn resp_password(self, password: Option<Secret>, is_required: bool) -> Self {
        Self { resp_password: password, resp_password_is_required: is_required, ..self }
    }

    pub(crate) fn has_resp_password(&self) -> bool {
        self.resp_password.is_some()
    }

    pub(crate) fn requires_resp_password(&self) -> bool {
        self.resp_password_is_required && self.has_resp_password()
    }

    /// True if `given` is the password of the Redis protocol, or there is none.
    pub(crate) fn is_resp_password(&self, given: &[u8]) -> bool {
        self.resp_password.as_ref().is_none_or(|password| password.matches(given))
    }

    pub(crate) fn has_no_token(&self) -> bool {
        self.token.is_none()
    }

    pub(crate) fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    pub(crate) fn metrics_are_open(&self) -> bool {
        self.metrics_are_open || self.is_loopback
    }

    pub(crate) fn knows(&self, given: &[u8]) -> bool {
        self.token.as_ref().is_some_and(|token| token.matches(given))
    }

    /// True if requests for this host, without a port, are meant for this server. A web page can
    /// point any name here (DNS rebinding), but not an address.
    pub(crate) fn answers_to(&self, host: &str) -> bool {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_own = match address.unwrap_or(host).parse::<IpAddr>() {
            Ok(address) => !self.is_loopback || address.to_canonical().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        is_own || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }

    pub(crate) fn takes_auth_from(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.auth_from.iter().any(|range| range.contains(&peer))
    }

    /// True if a gRPC client at this address needs no token.
    pub(crate) fn takes_grpc_from(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        peer.is_loopback() || self.grpc_from.iter().any(|range| range.contains(&peer))
    }
}
