//! Formats of access logs.

mod common_log;
mod detect;
mod fields;
mod json;
mod request;
mod table;
mod time;
mod words;
mod zone;

pub use self::detect::detect;
pub(crate) use self::detect::{fitting, shown};
use self::fields::Fields;
use self::table::Table;
pub use self::zone::Zone;
use crate::{Record, Skip, Wanted};

/// A family of formats that one parser reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// nginx `combined` and `main`, Apache `common` and `combined`, Traefik's common log format.
    Common,
    /// Apache `vhost_combined`.
    VhostCombined,
    /// Envoy's default format.
    Envoy,
    /// HAProxy's `option httplog`.
    Haproxy,
    /// AWS Application Load Balancer.
    Alb,
    /// W3C extended with `#Fields:`, as CloudFront writes it.
    W3c,
    /// JSON lines: Caddy, Traefik, or any with known names.
    Json,
    /// CSV whose first line names the columns.
    Csv,
}

/// Names, a line as an example of what the format looks like.
type Description = (LogFormat, &'static [&'static str], &'static str);

const DESCRIPTIONS: [Description; 8] = [
    (
        LogFormat::Json,
        &["json", "caddy", "traefik-json"],
        r#"{"ts":1794889960.1,"request":{"remote_ip":"203.0.113.7","method":"GET","uri":"/"},"status":200}"#,
    ),
    (
        LogFormat::W3c,
        &["cloudfront", "w3c"],
        "2026-11-17\t04:32:40\tFRA56\t512\t203.0.113.7\tGET\td1.cloudfront.net\t/index.html\t200",
    ),
    (
        LogFormat::Alb,
        &["alb"],
        r#"https 2026-11-17T04:32:40.186641Z app/lb/50dc 203.0.113.7:2817 10.0.0.1:80 0.0 0.1 0.0 200 200 34 366 "GET https://a.example:443/ HTTP/1.1" "curl/8""#,
    ),
    (
        LogFormat::Envoy,
        &["envoy"],
        r#"[2026-11-17T04:32:40.123Z] "GET / HTTP/1.1" 200 - 0 5 3 2 "203.0.113.7" "curl/8" "id" "a.example" "10.0.0.1:80""#,
    ),
    (
        LogFormat::Haproxy,
        &["haproxy"],
        r#"203.0.113.7:4711 [17/Nov/2026:04:32:40.655] front back/server 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1""#,
    ),
    (
        LogFormat::Common,
        &["combined", "common", "main", "traefik"],
        r#"203.0.113.7 - - [17/Nov/2026:04:32:40 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8""#,
    ),
    (
        LogFormat::VhostCombined,
        &["vhost_combined"],
        r#"a.example:443 203.0.113.7 - - [17/Nov/2026:04:32:40 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8""#,
    ),
    (LogFormat::Csv, &["csv"], "2026-11-17T04:32:40Z,203.0.113.7,GET,/index.html,200"),
];

impl LogFormat {
    /// The format of a name: `combined`, `common`, `main`, `vhost_combined`, `caddy`, `traefik`,
    /// `traefik-json`, `envoy`, `haproxy`, `alb`, `cloudfront`, `w3c`, `json` or `csv`.
    ///
    /// # Errors
    ///
    /// If there is no such format: says which there are.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let has_name = |(_, names, _): &&Description| names.contains(&name);
        match DESCRIPTIONS.iter().find(has_name) {
            Some((format, ..)) => Ok(*format),
            None => {
                let names: Vec<_> = DESCRIPTIONS.iter().flat_map(|(_, names, _)| *names).collect();
                let names: Vec<&str> = names.into_iter().copied().collect();
                Err(format!("{name:?} is no log format; use one of {}", names.join(", ")))
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.description().1[0]
    }

    /// A line of this format.
    #[must_use]
    pub fn example(self) -> &'static str {
        self.description().2
    }

    fn description(self) -> &'static Description {
        let same = |(format, ..): &&Description| *format == self;
        DESCRIPTIONS.iter().find(same).unwrap_or(&DESCRIPTIONS[0])
    }
}

/// Reads the lines of one log.
#[derive(Debug)]
pub struct Parser {
    format: LogFormat,
    context: Context,
    common: common_log::Cache,
    /// Where values go that are not part of the line as they are.
    scratch: [Vec<u8>; 3],
    fields: Fields,
    table: Table,
}

/// What all formats need.
#[derive(Clone, Debug)]
struct Context {
    wanted: Wanted,
    zone: Zone,
    /// Places of headers that text formats have.
    agent: Option<usize>,
    referer: Option<usize>,
    forwarded: Option<usize>,
}

impl Parser {
    /// A parser that keeps the wanted headers. Times without a zone are in `zone`.
    #[must_use]
    pub fn new(format: LogFormat, wanted: &Wanted, zone: Zone) -> Self {
        let context = Context {
            wanted: wanted.clone(),
            zone,
            agent: wanted.place("user-agent"),
            referer: wanted.place("referer"),
            forwarded: wanted.place("x-forwarded-for"),
        };
        let table = Table::new(format == LogFormat::Csv);
        let (common, scratch, fields) = Default::default();
        Self { format, context, common, scratch, fields, table }
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// The request of a line; `None` if the line is a header or a comment.
    ///
    /// # Errors
    ///
    /// If the line is no request that can be replayed.
    pub fn parse<'p>(&'p mut self, line: &'p [u8]) -> Result<Option<Record<'p>>, Skip> {
        let Self { format, context, common, scratch, fields, table } = self;
        match format {
            LogFormat::Common => common_log::common(line, context, common, scratch).map(Some),
            LogFormat::VhostCombined => common_log::vhost(line, context, common, scratch).map(Some),
            LogFormat::Envoy => words::envoy(line, context).map(Some),
            LogFormat::Haproxy => words::haproxy(line, context, &mut scratch[0]).map(Some),
            LogFormat::Alb => words::alb(line, context).map(Some),
            LogFormat::Json => {
                json::read(line, context, fields)?;
                fields.record(context).map(Some)
            }
            LogFormat::W3c | LogFormat::Csv => match table.read(line, context, fields)? {
                true => fields.record(context).map(Some),
                false => Ok(None),
            },
        }
    }
}
