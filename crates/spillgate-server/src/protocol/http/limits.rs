//! `GET /v1/limits`.

use schemars::JsonSchema;
use serde::Serialize;
use spillgate_policy::LimitSummary;

use super::problem::Problem;
use super::reply::{Reply, json};
use super::service::block_in_place;
use crate::App;

/// The limits of the policy in force.
#[derive(Serialize, JsonSchema)]
pub(super) struct Limits {
    /// In the order of the policy.
    limits: Vec<LimitSummary>,
}

pub(super) fn run(app: &App) -> Result<Reply, Problem> {
    json(&Limits { limits: block_in_place(|| app.gate().limits()) })
}
