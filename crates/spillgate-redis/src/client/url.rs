use percent_encoding::percent_decode_str;

use super::address::{Address, Target};
use super::options::Password;
use crate::backend::{BackendError, Fault, Result};

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// The parts of a URL.
pub(super) struct Parsed {
    pub(super) target: Target,
    pub(super) is_tls: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    pub(super) database: u32,
}

/// Parses a URL. Errors quote nothing but a known scheme: in an invalid URL a password may stand
/// anywhere.
pub(super) fn parse(url: &str) -> Result<Parsed> {
    read(url).map_err(|why| {
        let text = format!("the URL {} {why}", known_scheme(url));
        BackendError::new(Fault::Misconfigured, text)
    })
}

/// The parts of a URL, or what is wrong with it.
fn read(url: &str) -> Result<Parsed, &'static str> {
    let (scheme, rest) = url.split_once("://").ok_or(
        "has no scheme: it must begin with redis://, rediss:// or another of the known ones",
    )?;
    if rest.contains(['?', '#']) {
        return Err("has a ? or #: settings are given apart, and in a password write %3F, %23");
    }
    let scheme = scheme.replacen("valkey", "redis", 1);
    if matches!(scheme.as_str(), "unix" | "redis+unix") {
        let socket =
            socket(rest).ok_or("names no socket: it must be like unix:///run/redis.sock")?;
        let target = Target::One(socket);
        return Ok(Parsed { target, is_tls: false, user: None, password: None, database: 0 });
    }
    let is_tls = scheme.starts_with("rediss");
    let (credentials, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (target, database) = target(&scheme, hosts, path)?;
    let database = match database.trim_end_matches('/') {
        "" => 0,
        number => number.parse().map_err(|_| "must end with the number of a database")?,
    };
    let (user, password) = read_credentials(credentials)
        .ok_or("has a user or password that is not UTF-8 behind its % signs")?;
    Ok(Parsed { target, is_tls, user, password, database })
}

/// The target of a scheme, and the database part of the path.
fn target<'a>(scheme: &str, hosts: &str, path: &'a str) -> Result<(Target, &'a str), &'static str> {
    match scheme {
        "redis" | "rediss" => match <[Address; 1]>::try_from(addresses(hosts, REDIS_PORT)?) {
            Ok([address]) => Ok((Target::One(address), path)),
            Err(_) => Err("names several hosts: begin with redis+cluster:// or redis+sentinel://"),
        },
        "redis+sentinel" | "rediss+sentinel" => {
            let (service, database) = path.split_once('/').unwrap_or((path, ""));
            if service.is_empty() {
                return Err("names no service: it must end with /service, as Sentinel calls it");
            }
            let sentinels = addresses(hosts, SENTINEL_PORT)?;
            Ok((Target::Sentinel { sentinels, service: service.to_owned() }, database))
        }
        "redis+cluster" | "rediss+cluster" => match path {
            "" | "0" => Ok((Target::Cluster(addresses(hosts, REDIS_PORT)?), "")),
            _ => Err("names a database, but a Cluster has only 0"),
        },
        _ => {
            Err("has an unknown scheme: use redis://, rediss:// (TLS), unix://, redis+sentinel:// \
                  or redis+cluster:// (with TLS rediss+sentinel://, rediss+cluster://)")
        }
    }
}

fn addresses(hosts: &str, default_port: u16) -> Result<Vec<Address>, &'static str> {
    // Without brackets the end of an IPv6 address is ambiguous.
    let is_clear = |host: &str| host.starts_with('[') || host.matches(':').count() <= 1;
    // Hosts are shown: an invalid one may be a password that is not percent-encoded.
    let is_plain = |host: &str| {
        let is_sign = |sign: u8| sign.is_ascii_alphanumeric() || b".-_:".contains(&sign);
        host.bytes().all(|sign| is_sign(sign) || (host.starts_with('[') && b"[]%".contains(&sign)))
    };
    let read =
        |host| Address::parse(host, default_port).filter(|_| is_clear(host) && is_plain(host));
    hosts
        .split(',')
        .map(read)
        .collect::<Option<_>>()
        .ok_or("must name hosts like name, name:6379 or [::1]:6379, with commas between several")
}

fn socket(path: &str) -> Option<Address> {
    let path = percent_decode_str(path).decode_utf8().ok()?;
    path.starts_with('/').then(|| Address::Unix(path.into_owned().into()))
}

fn read_credentials(text: &str) -> Option<(Option<String>, Option<Password>)> {
    let decode = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(decode(password)?)),
        None => (text, None),
    };
    let user = Some(decode(user)?).filter(|user| !user.is_empty());
    Some((user, password.filter(|password| !password.is_empty()).map(Password)))
}

/// The part of any URL that may be shown.
fn known_scheme(url: &str) -> String {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_known = |scheme: &str| {
        let scheme = scheme.replacen("valkey", "redis", 1);
        let plain = scheme.replacen("rediss", "redis", 1);
        matches!(
            plain.as_str(),
            "redis" | "redis+sentinel" | "redis+cluster" | "redis+unix" | "unix"
        )
    };
    if is_known(scheme) { format!("`{scheme}://…`") } else { "`…`".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp(host.into(), port)
    }

    #[test]
    fn each_scheme_names_a_way_to_connect() {
        let read = |url: &str| parse(url).unwrap();
        let one = read("redis://a");
        assert_eq!((one.target, one.is_tls), (Target::One(tcp("a", 6379)), false));
        let tls = read("valkeys://me:p%40ss@a:1/3");
        assert_eq!((tls.target, tls.is_tls), (Target::One(tcp("a", 1)), true));
        assert_eq!((tls.user.as_deref(), tls.database), (Some("me"), 3));
        assert_eq!(tls.password.unwrap().0, "p@ss");
        let unix = read("unix:///run/redis.sock");
        assert_eq!(unix.target, Target::One(Address::Unix("/run/redis.sock".into())));
        let sentinel = read("redis+sentinel://:x@a,b:2/main/1");
        let sentinels = vec![tcp("a", 26379), tcp("b", 2)];
        assert_eq!(sentinel.target, Target::Sentinel { sentinels, service: "main".into() });
        assert_eq!((sentinel.user, sentinel.database), (None, 1));
        let cluster = read("rediss+cluster://a:1,[::1]:2");
        assert_eq!(cluster.target, Target::Cluster(vec![tcp("a", 1), tcp("::1", 2)]));
        assert!(cluster.is_tls);
    }

    #[test]
    fn errors_do_not_show_the_password() {
        for (url, why) in [
            ("localhost:6379", "has no scheme"),
            ("http://u:hunter2@a", "unknown scheme"),
            ("redis+cluste://a", "unknown scheme"),
            ("redis://u:hunter2@", "must name hosts"),
            ("redis://u:hunter2@a:x", "must name hosts"),
            ("redis://u:hunter2", "must name hosts"),
            ("redis://::1", "must name hosts"),
            ("redis://u:hunter2@a,b", "several hosts"),
            ("redis://u:hunter2@a/x", "number of a database"),
            ("redis+sentinel://u:hunter2@a", "names no service"),
            ("redis+cluster://u:hunter2@a/1", "only 0"),
            ("redis://u:hunter2@a?db=1", "settings are given apart"),
            ("redis://u:%ff@a", "UTF-8"),
            ("unix://u:hunter2@a", "names no socket"),
        ] {
            let error = parse(url).map(|_| ()).unwrap_err();
            assert_eq!(error.fault(), Fault::Misconfigured);
            let text = error.to_string();
            assert!(text.contains(why) && !text.contains("hunter2"), "{url}: {text}");
        }
    }

    /// Places in which somebody may have put a password, by mistake or not.
    const PLACES: [&str; 22] = [
        "redis://me:{}@host",
        "redis://:{}@host:1/2",
        "redis://{}@host",
        "redis://{}:pass@host",
        "redis://host?password={}",
        "redis://host:6379/0?password={}",
        "redis://host#{}",
        "redis://host/{}",
        "redis://host:{}",
        "redis://me:{}",
        "redis://me:{}@",
        "redis://me:{}@host:port",
        "redis://me:{}%40host",
        "rediss://me%3A{}%40host",
        "redis+cluster://a,me:{}@b",
        "redis+cluster://me:{}@a/1",
        "redis+sentinel://me:{}@a,b/main/x",
        "redis+sentinel://me:{}@a,b",
        "unix://me:{}@a",
        "http://me:{}@host",
        "{}://host",
        "me:{}@host",
    ];

    proptest::proptest! {
        #[test]
        fn no_password_is_shown_wherever_it_stands(
            // Long enough to stand nowhere by chance, and no digits alone, which would be a port.
            password in "[A-Z][!-~]{7,20}",
            place in proptest::sample::select(&PLACES),
        ) {
            let url = place.replace("{}", &password);
            let shown = match crate::client::Options::new(&url) {
                Ok(options) => {
                    let Parsed { target, .. } = parse(&url).unwrap_or_else(|_| unreachable!());
                    format!("{options:?} {target}")
                }
                Err(error) => format!("{error} {error:?}"),
            };
            // Neither as a whole nor a part of it, between signs that end something in a URL.
            for part in password.split(['@', '/', ':', '?', '#', ',', '%']).filter(|it| it.len() > 7) {
                proptest::prop_assert!(!shown.contains(part), "{url}: {shown}");
            }
        }
    }
}
