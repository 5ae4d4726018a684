//! Whatever forwarding headers say, an untrusted peer is itself, and behind a trusted
//! proxy only what that proxy has added counts.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use http::{HeaderMap, HeaderValue, Method, Uri};
use libfuzzer_sys::fuzz_target;
use spillgate_policy::{Gate, Identity, Limit, Outcome, Policy, RequestView};

const HEADERS: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "cf-connecting-ip"];
const PROXY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

/// One gate for each header that is believed.
static GATES: LazyLock<[Gate; 4]> = LazyLock::new(|| {
    HEADERS.map(|header| {
        let identity = Identity::new().trusted_proxies(["10.0.0.0/8"]).client_ip([header]);
        let policy = Policy::builder().identity(identity).limit(Limit::new("l", "1/s")).build();
        Gate::new(policy.expect("a valid policy")).expect("memory for one limit")
    })
});

fuzz_target!(|lines: Vec<(u8, Vec<u8>)>| {
    let mut headers = HeaderMap::new();
    for (name, value) in &lines {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(HEADERS[usize::from(*name) % HEADERS.len()], value);
        }
    }
    for gate in GATES.iter() {
        assert_eq!(caller(gate, CLIENT, &headers), CLIENT);
        let _ = caller(gate, PROXY, &headers);
    }
    for (gate, header, added) in
        [(&GATES[0], "forwarded", "for=203.0.113.7"), (&GATES[1], "x-forwarded-for", "203.0.113.7")]
    {
        // A proxy adds a line of its own, or to the last one.
        let mut own_line = headers.clone();
        own_line.append(header, HeaderValue::from_static(added));
        assert_eq!(caller(gate, PROXY, &own_line), CLIENT, "{header}");
        let last =
            headers.get_all(header).iter().next_back().map_or(&b""[..], HeaderValue::as_bytes);
        let joined = [last, b", ", added.as_bytes()].concat();
        let Ok(joined) = HeaderValue::from_bytes(&joined) else { continue };
        let mut same_line = headers.clone();
        same_line.append(header, joined);
        assert_eq!(caller(gate, PROXY, &same_line), CLIENT, "{header}");
    }
});

/// Whom the gate takes the sender for.
fn caller(gate: &Gate, peer: Ipv4Addr, headers: &HeaderMap) -> IpAddr {
    let uri = Uri::from_static("/");
    let request = RequestView::new(&Method::GET, &uri, headers, Some(IpAddr::V4(peer)));
    let outcome = gate
        .try_decide(&request, |it| it.map(Outcome::take))
        .expect("ready at once")
        .expect("never fails");
    let counted = outcome.limits().next().expect("one limit").counted().to_string();
    counted.strip_prefix("caller=").and_then(|ip| ip.parse().ok()).expect("an address")
}
