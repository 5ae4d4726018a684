//! Fields by name, of formats that name them.

use super::request::{RequestLine, address, present, present_text, request, request_line};
use super::{Context, time};
use crate::{Record, Skip};

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Time,
    /// A day, if the time is a time of day.
    Date,
    Peer,
    Method,
    Target,
    RequestLine,
    Host,
    User,
    Status,
    Header(usize),
}

const FIELDS: usize = 9;

/// A field and, where a log has several names of it, which counts: the lowest.
pub(super) type Ranked = (Field, u8);

/// The field of a name: those of nginx variables, Caddy, Traefik, Envoy, W3C and the usual ones.
pub(super) fn field(name: &str, context: &Context) -> Option<Ranked> {
    let plain = name.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    let found = match plain.as_str() {
        "startutc" | "start_time" | "request_creation_time" | "msec" => (Field::Time, 0),
        "ts" | "time_iso8601" | "startlocal" => (Field::Time, 1),
        "timestamp" | "@timestamp" | "datetime" => (Field::Time, 2),
        "time" | "time_local" => (Field::Time, 3),
        "date" => (Field::Date, 0),
        "remote_ip"
        | "remote_addr"
        | "remote_address"
        | "peer"
        | "clienthost"
        | "c_ip"
        | "downstream_remote_address" => (Field::Peer, 0),
        "ip" | "client_ip" | "clientip" | "clientaddr" | "client_address" => (Field::Peer, 1),
        "client" | "address" | "remote_host" => (Field::Peer, 2),
        "method" | "request_method" | "requestmethod" | "cs_method" | "http_method" | "verb" => {
            (Field::Method, 0)
        }
        "uri" | "request_uri" | "requestpath" | "cs_uri_stem" => (Field::Target, 0),
        "path" | "url" | "request_path" | "target" => (Field::Target, 1),
        "request" | "request_line" => (Field::RequestLine, 0),
        "host" | "requesthost" | "authority" | "http_host" | "x_host_header" => (Field::Host, 0),
        "cs(host)" | "cs_host" | "vhost" | "requestaddr" => (Field::Host, 1),
        "server_name" | "domain" | "domain_name" => (Field::Host, 2),
        "user" | "username" | "remote_user" | "clientusername" | "cs_username" => (Field::User, 0),
        "status" | "status_code" | "sc_status" | "response_code" | "downstreamstatus" => {
            (Field::Status, 0)
        }
        _ => return header(&plain, context).map(|place| (Field::Header(place), 0)),
    };
    Some(found)
}

/// The place of a header by a name such as `http_user_agent`, `request_user_agent` (Traefik),
/// `cs(user_agent)`, `header:user_agent` or `user_agent`.
fn header(plain: &str, context: &Context) -> Option<usize> {
    let name = plain.strip_prefix("cs(").and_then(|name| name.strip_suffix(')'));
    let prefixes = ["header:", "http_", "request_"];
    let name = name.or_else(|| prefixes.iter().find_map(|prefix| plain.strip_prefix(prefix)));
    context.wanted.place(&name.unwrap_or(plain).replace('_', "-"))
}

/// The fields of one line.
#[derive(Debug, Default)]
pub(super) struct Fields {
    values: [Vec<u8>; FIELDS],
    ranks: [Option<u8>; FIELDS],
    headers: Vec<(usize, Vec<u8>)>,
}

impl Fields {
    pub(super) fn clear(&mut self) {
        self.ranks = [None; FIELDS];
        self.headers.clear();
    }

    pub(super) fn set(&mut self, (field, rank): Ranked, value: &[u8]) {
        let Some(value) = present(value) else { return };
        let place = match field {
            Field::Time => 0,
            Field::Date => 1,
            Field::Peer => 2,
            Field::Method => 3,
            Field::Target => 4,
            Field::RequestLine => 5,
            Field::Host => 6,
            Field::User => 7,
            Field::Status => 8,
            Field::Header(place) => return self.headers.push((place, value.to_vec())),
        };
        if self.ranks[place].is_none_or(|present| rank < present) {
            self.ranks[place] = Some(rank);
            self.values[place].clear();
            self.values[place].extend_from_slice(value);
        }
    }

    fn get(&self, place: usize) -> Option<&[u8]> {
        self.ranks[place].map(|_| self.values[place].as_slice())
    }

    pub(super) fn record(&self, context: &Context) -> Result<Record<'_>, Skip> {
        let (time, date, target) = (self.get(0), self.get(1), self.get(4));
        let line = self.get(5);
        if (time.is_none() && date.is_none()) || (target.is_none() && line.is_none()) {
            return Err(Skip::Malformed);
        }
        let moment = match (time, date) {
            (Some(time), Some(date)) => {
                let both = [date, b" ", time].concat();
                time::iso(&both, &context.zone).or_else(|| time::any(time, &context.zone))
            }
            (Some(one), None) | (None, Some(one)) => time::any(one, &context.zone),
            (None, None) => None,
        };
        let (time, is_whole_second) = moment.ok_or(Skip::Time)?;
        let peer = address(self.get(2).ok_or(Skip::Address)?)?;
        let RequestLine { method, path, host } = match (target, line) {
            (Some(target), _) => request(self.get(3).unwrap_or(b"GET"), target)?,
            (None, line) => request_line(line.unwrap_or_default())?,
        };
        let host = self.get(6).and_then(present_text).or(host);
        let status = self.get(8).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        Ok(Record {
            time,
            is_whole_second,
            peer,
            method,
            path,
            host,
            user: self.get(7),
            status: status.unwrap_or(0),
            headers: self.headers.iter().map(|(place, value)| (*place, value.as_slice())).collect(),
        })
    }
}
