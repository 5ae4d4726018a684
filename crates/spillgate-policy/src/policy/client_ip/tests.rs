use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::ForwardingHeader::*;
use super::*;

const PROXY: &str = "10.0.0.1";

fn trusted() -> AddressSet {
    ["10.0.0.0/8", "2001:db8:ffff::/48"].iter().map(|range| range.parse().unwrap()).collect()
}

fn headers<V: AsRef<[u8]>>(lines: &[(ForwardingHeader, V)]) -> HeaderMap {
    let line = |(header, value): &(ForwardingHeader, V)| {
        let value = HeaderValue::from_bytes(value.as_ref()).unwrap();
        (header.header_name().clone(), value)
    };
    lines.iter().map(line).collect()
}

/// The client of a request from a trusted proxy. `None` if it is the proxy itself.
fn behind_proxy<V: AsRef<[u8]>>(
    sources: &[ForwardingHeader],
    lines: &[(ForwardingHeader, V)],
) -> Option<(ForwardingHeader, IpAddr)> {
    let peer = PROXY.parse::<IpAddr>().unwrap().into();
    let client = client_ip(peer, &headers(lines), &trusted(), sources);
    match client.source {
        Source::Header(header) => Some((header, client.address.into())),
        Source::Peer => {
            assert_eq!(client.address, peer);
            None
        }
    }
}

/// As above, of the lines of one header.
fn named<V: AsRef<[u8]> + Copy>(header: ForwardingHeader, lines: &[V]) -> Option<String> {
    let lines: Vec<_> = lines.iter().map(|line| (header, *line)).collect();
    behind_proxy(&[header], &lines).map(|(_, address)| address.to_string())
}

#[test]
fn a_header_is_known_by_its_name_in_lower_case() {
    for header in ForwardingHeader::ALL {
        assert_eq!(ForwardingHeader::parse(header.name()), Ok(header));
    }
    assert_eq!(
        ForwardingHeader::parse("X-Forwarded-For").unwrap_err(),
        "\"X-Forwarded-For\" is not a header that names clients; use forwarded, \
         x-forwarded-for, x-real-ip or cf-connecting-ip"
    );
}

#[test]
fn x_forwarded_for_is_believed_as_far_as_proxies_are_trusted() {
    for (lines, expected) in [
        (&["192.0.2.7"][..], Some("192.0.2.7")),
        (&["192.0.2.7:5678"], Some("192.0.2.7")),
        (&["\t2001:db8::1 "], Some("2001:db8::1")),
        (&["[2001:db8::1]:443"], Some("2001:db8::1")),
        (&["::ffff:192.0.2.7"], Some("192.0.2.7")),
        // The client is the last that is not a proxy.
        (&["6.6.6.6, 192.0.2.7"], Some("192.0.2.7")),
        (&["6.6.6.6, 192.0.2.7, 10.0.0.2,10.0.0.3:80"], Some("192.0.2.7")),
        (&["192.0.2.7, ::ffff:10.0.0.2, [2001:db8:ffff::1]:80"], Some("192.0.2.7")),
        // Several lines are one list.
        (&["6.6.6.6", "192.0.2.7"], Some("192.0.2.7")),
        (&["192.0.2.7", "10.0.0.3, 10.0.0.2"], Some("192.0.2.7")),
        // A request from the inside.
        (&["10.0.0.3, 10.0.0.2"], Some("10.0.0.3")),
        // What cannot be read ends the walk.
        (&["6.6.6.6, unknown, 192.0.2.7"], Some("192.0.2.7")),
        (&["6.6.6.6, unknown, 10.0.0.2"], Some("10.0.0.2")),
        (&["6.6.6.6,, 10.0.0.2"], Some("10.0.0.2")),
        (&["6.6.6.6", "", "10.0.0.2"], Some("10.0.0.2")),
        (&["6.6.6.6, fe80::1%eth0, 10.0.0.2"], Some("10.0.0.2")),
        // Nothing can be read at all.
        (&["6.6.6.6, unknown"], None),
        (&["6.6.6.6,"], None),
        (&["6.6.6.6", ""], None),
        (&["\"6.6.6.6\""], None),
        (&[""], None),
        (&[], None),
    ] {
        assert_eq!(named(XForwardedFor, lines).as_deref(), expected, "{lines:?}");
    }
    assert_eq!(named(XForwardedFor, &[b"6.6.6.6, 10.0.0.2\xff"]), None);
}

#[test]
fn forwarded_is_believed_as_far_as_proxies_are_trusted() {
    for (lines, expected) in [
        (&["for=192.0.2.7"][..], Some("192.0.2.7")),
        (&["for=6.6.6.6, for=192.0.2.7;proto=https, for=10.0.0.2"], Some("192.0.2.7")),
        (&[r#"for=192.0.2.7, for="[2001:db8:ffff::1]:80""#], Some("192.0.2.7")),
        (&["for=6.6.6.6", "for=192.0.2.7", "for=10.0.0.2"], Some("192.0.2.7")),
        (&["for=10.0.0.3, for=10.0.0.2"], Some("10.0.0.3")),
        // What cannot be read ends the walk.
        (&["for=6.6.6.6, for=_hidden, for=10.0.0.2"], Some("10.0.0.2")),
        (&["for=6.6.6.6, proto=https, for=10.0.0.2"], Some("10.0.0.2")),
        (&["for=6.6.6.6, for=1.1.1.1;for=2.2.2.2, for=10.0.0.2"], Some("10.0.0.2")),
        (&["for=6.6.6.6", r#"for=6.6.6.6, for=""#, "for=10.0.0.2"], Some("10.0.0.2")),
        // A quote that the client left open hides nothing that a proxy appended.
        (&[r#"for=6.6.6.6;host=", for=192.0.2.7"#], Some("192.0.2.7")),
        (&[r#"for=6.6.6.6;host="\, for="192.0.2.7""#], Some("192.0.2.7")),
        // Nothing can be read at all.
        (&["for=6.6.6.6, for=unknown"], None),
        (&["for=6.6.6.6, for=\"192.0.2.7"], None),
        (&["for=6.6.6.6", ""], None),
        (&[], None),
    ] {
        assert_eq!(named(Forwarded, lines).as_deref(), expected, "{lines:?}");
    }
}

#[test]
fn headers_of_one_address_name_exactly_one() {
    for header in [XRealIp, CfConnectingIp] {
        for (lines, expected) in [
            (&["192.0.2.7"][..], Some("192.0.2.7")),
            (&["10.0.0.2"], Some("10.0.0.2")),
            (&[" [2001:db8::1]:443"], Some("2001:db8::1")),
            (&["192.0.2.7, 192.0.2.8"], None),
            (&["192.0.2.7", "192.0.2.7"], None),
            (&["unknown"], None),
            (&[""], None),
        ] {
            assert_eq!(named(header, lines).as_deref(), expected, "{header:?} {lines:?}");
        }
    }
}

#[test]
fn the_first_header_that_is_there_decides() {
    let client = |address: &str| address.parse::<IpAddr>().unwrap();
    let both = [(XRealIp, "192.0.2.7"), (XForwardedFor, "192.0.2.8")];
    for (sources, expected) in [
        (&[XRealIp, XForwardedFor][..], Some((XRealIp, client("192.0.2.7")))),
        (&[XForwardedFor, XRealIp], Some((XForwardedFor, client("192.0.2.8")))),
        (&[CfConnectingIp, Forwarded, XRealIp], Some((XRealIp, client("192.0.2.7")))),
        (&[Forwarded], None),
        (&[], None),
    ] {
        assert_eq!(behind_proxy(sources, &both), expected, "{sources:?}");
    }
}

#[test]
fn a_header_that_cannot_be_read_does_not_give_way_to_the_next() {
    let sources = [XForwardedFor, XRealIp];
    for garbage in ["", "unknown", "6.6.6.6,"] {
        let lines = [(XForwardedFor, garbage), (XRealIp, "6.6.6.6")];
        assert_eq!(behind_proxy(&sources, &lines), None, "{garbage:?}");
    }
}

#[test]
fn a_proxy_is_trusted_also_as_ipv4_in_ipv6() {
    let peer = "::ffff:10.0.0.1".parse::<IpAddr>().unwrap().into();
    let headers = headers(&[(XRealIp, "192.0.2.7")]);
    let client = client_ip(peer, &headers, &trusted(), &[XRealIp]);
    let address = IpAddr::from([192, 0, 2, 7]).into();
    assert_eq!(client, ClientIp { address, source: Source::Header(XRealIp) });

    let nobody = AddressSet::default();
    let client = client_ip(peer, &headers, &nobody, &[XRealIp]);
    let address = IpAddr::from([10, 0, 0, 1]).into();
    assert_eq!(client, ClientIp { address, source: Source::Peer });
}

/// Anything that a header may hold, often almost right.
fn anything() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_map(|byte| if byte < 0x20 || byte == 0x7f { b'\t' } else { byte });
    let part = prop_oneof![
        prop::collection::vec(byte, 0..4),
        prop::sample::select(vec![
            ",",
            ";",
            "=",
            "\"",
            "\\",
            " ",
            "for=",
            "host=\"",
            "6.6.6.6",
            "10.0.0.9",
            "unknown",
            "[2001:db8::6]:80",
            ", for=6.6.6.6",
            "\", for=\"6.6.6.6",
        ])
        .prop_map(Vec::from),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
        any::<u128>().prop_map(|bits| IpAddr::V6(bits.into()).to_canonical()),
    ]
}

fn outsider() -> impl Strategy<Value = IpAddr> {
    address().prop_filter("a trusted proxy", |address| !trusted().contains((*address).into()))
}

/// What trusted proxies append: the client, and those of them that are in between.
fn chain() -> impl Strategy<Value = Vec<IpAddr>> {
    let proxy = any::<u8>().prop_map(|last| IpAddr::from([10, 0, 0, last]));
    (outsider(), prop::collection::vec(proxy, 0..3))
        .prop_map(|(client, proxies)| std::iter::once(client).chain(proxies).collect())
}

/// An element of `Forwarded` with a host that the client chose.
fn element(address: IpAddr, host: &[u8]) -> Vec<u8> {
    let node = if address.is_ipv4() { address.to_string() } else { format!("\"[{address}]\"") };
    let mut element = format!("for={node};host=\"").into_bytes();
    for byte in host {
        if matches!(byte, b'"' | b'\\') {
            element.push(b'\\');
        }
        element.push(*byte);
    }
    element.push(b'"');
    element
}

fn assert_client(header: ForwardingHeader, lines: &[&[u8]], client: IpAddr) {
    let lines: Vec<_> = lines.iter().map(|line| (header, *line)).collect();
    assert_eq!(behind_proxy(&[header], &lines), Some((header, client)));
}

proptest! {
    #[test]
    fn a_peer_that_is_not_trusted_is_the_client_whatever_it_sends(
        peer in outsider(),
        lines in prop::collection::vec(
            (prop::sample::select(&ForwardingHeader::ALL), anything()),
            0..6,
        ),
    ) {
        let address = peer.into();
        let client = client_ip(address, &headers(&lines), &trusted(), &ForwardingHeader::ALL);
        prop_assert_eq!(client, ClientIp { address, source: Source::Peer });
    }

    #[test]
    fn nothing_before_what_the_proxies_append_to_x_forwarded_for_counts(
        before in anything(),
        chain in chain(),
    ) {
        let appended: Vec<_> = chain.iter().map(IpAddr::to_string).collect();
        let appended = appended.join(", ").into_bytes();
        let one_line = [&before[..], b", ", &appended].concat();
        assert_client(XForwardedFor, &[&one_line], chain[0]);
        assert_client(XForwardedFor, &[&before, &appended], chain[0]);
    }

    // In one line also after a quote that was left open: lines are read from the end.
    #[test]
    fn nothing_before_what_the_proxies_append_to_forwarded_counts(
        before in anything(),
        chain in chain(),
        host in anything(),
    ) {
        let appended: Vec<_> = chain.iter().map(|address| element(*address, &host)).collect();
        let appended = appended.join(&b", "[..]);
        let one_line = [&before[..], b", ", &appended].concat();
        assert_client(Forwarded, &[&one_line], chain[0]);
        assert_client(Forwarded, &[&before, &appended], chain[0]);
    }

    #[test]
    fn whatever_a_trusted_proxy_sends_has_an_answer(
        lines in prop::collection::vec(
            (prop::sample::select(&ForwardingHeader::ALL), anything()),
            0..6,
        ),
    ) {
        for source in ForwardingHeader::ALL {
            behind_proxy(&[source], &lines);
        }
    }
}
