//! `/v1/reports`: how calls ended that a program made, for adaptive limits.

mod text;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json as example;
use spillgate::adaptive::Ending;
use spillgate_policy::CallReport;

use self::text::{ENDINGS, EndingText, FailedText, Latency};
use super::HttpServer;
use super::check::Text;
use super::json::{Integer, parse};
use super::parameters::{Parameter, ParameterType, Query};
use super::problem::Problem;
use super::reply::{Reply, no_content};
use crate::protocol::report::{latency, note_all};

/// How calls ended.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentReport<'a> {
    #[serde(borrow)]
    limit: Text<'a>,
    latency: Option<Latency>,
    ending: Option<EndingText>,
    count: Option<Integer>,
}

/// The keys of both forms, so that an error names an unknown one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentReports<'a> {
    #[serde(borrow)]
    limit: Option<Text<'a>>,
    latency: Option<Latency>,
    ending: Option<EndingText>,
    count: Option<Integer>,
    #[serde(borrow)]
    reports: Option<Vec<SentReport<'a>>>,
}

pub(super) const ENDING: Parameter = Parameter {
    name: "ending",
    kind: ParameterType::OneOf(ENDINGS),
    description: "How the call ended that held the permit, for an adaptive limit; \
                  nothing is learnt from it if absent",
};

pub(super) fn run(server: &HttpServer, body: &[u8]) -> Result<Reply, Problem> {
    let sent = parse::<SentReports<'_>>(body)?.list()?;
    let most = server.bounds.batch;
    if sent.len() > most {
        let detail = format!("too many reports in a request: {}; at most {most}", sent.len());
        return Err(Problem::bad_request(detail));
    }
    let reports: Result<Vec<_>, _> = sent.iter().map(SentReport::report).collect();
    let reports = reports.map_err(Problem::bad_request)?;
    note_all(server.app.enforcer(), &reports).map_err(|refused| match refused {
        Ok((limit, error)) => Problem::of_limit(&server.app, limit, &error),
        Err(detail) => Problem::bad_request(detail),
    })?;
    Ok(no_content())
}

/// How the call ended that held a permit, if a query says so.
pub(super) fn ending(query: &Query) -> Result<Option<Ending>, Problem> {
    let value = query.iter().find(|(name, _)| *name == ENDING.name).map(|(_, value)| value);
    let ending = value.map(|value| value.parse::<EndingText>().map_err(Problem::bad_request));
    Ok(ending.transpose()?.map(|EndingText(ending)| ending))
}

impl<'a> SentReports<'a> {
    fn list(self) -> Result<Vec<SentReport<'a>>, Problem> {
        let Self { limit, latency, ending, count, reports } = self;
        match (limit, reports) {
            (Some(limit), None) => Ok(vec![SentReport { limit, latency, ending, count }]),
            (None, Some(reports)) if latency.is_none() && ending.is_none() && count.is_none() => {
                Ok(reports)
            }
            _ => Err(Problem::bad_request(
                "send one report with a \"limit\", or several in \"reports\"",
            )),
        }
    }
}

impl SentReport<'_> {
    fn report(&self) -> Result<CallReport<'_>, String> {
        let ending = self.ending.map_or(Ending::Ok, |EndingText(ending)| ending);
        let latency = match (self.latency, ending) {
            (Some(Latency(seconds)), _) => latency(seconds)?,
            (None, Ending::Failed) => Duration::ZERO,
            (None, _) => {
                return Err("latency is missing; say how many seconds the call took".to_owned());
            }
        };
        let count = self.count.map_or(1, |Integer(count)| count);
        Ok(CallReport { limit: self.limit.as_str(), ending, latency, count })
    }
}

/// One report, or several.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "ReportsBody", deny_unknown_fields)]
#[expect(dead_code, reason = "describes a shape")]
pub(super) enum ReportsBody<'a> {
    /// One.
    One(ReportBody<'a>),
    /// Several: all are noted, or none.
    Several {
        /// In any order.
        #[schemars(length(max = 1000))]
        reports: Vec<ReportBody<'a>>,
    },
}

/// How calls ended. Those that failed need not say how long they took.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Report", deny_unknown_fields)]
#[schemars(
    example = example!({ "limit": "service", "latency": 0.012 }),
    example = example!({ "limit": "service", "ending": "failed", "count": 3 }),
)]
#[expect(dead_code, reason = "describes a shape")]
pub(super) enum ReportBody<'a> {
    /// Any calls.
    Any {
        /// The name of an adaptive limit.
        limit: Text<'a>,
        /// How many seconds each call took, at most an hour.
        latency: Latency,
        /// How they ended: `ok` if absent.
        ending: Option<EndingText>,
        /// How many calls: 1 if absent.
        #[schemars(range(min = 1, max = 10_000))]
        count: Option<Integer>,
    },
    /// Calls that failed.
    Failed {
        /// The name of an adaptive limit.
        limit: Text<'a>,
        /// How many seconds each call took, at most an hour.
        latency: Option<Latency>,
        /// How they ended.
        ending: FailedText,
        /// How many calls: 1 if absent.
        #[schemars(range(min = 1, max = 10_000))]
        count: Option<Integer>,
    },
}
