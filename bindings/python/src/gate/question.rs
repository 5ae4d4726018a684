//! What a gate is asked from Python.

use spillgate_enforce::Enforcer;
use spillgate_policy::store::Store;
use spillgate_policy::{Error, LimitCheck, Outcome, RequestView};

use super::request::Request;

pub(super) enum Question {
    Request(Request),
    /// A cost under one limit by name. It is refused as an empty request would be.
    Limit {
        limit: String,
        values: Vec<String>,
        cost: u64,
        request: Request,
    },
}

impl Question {
    pub(super) fn view(&self) -> RequestView<'_> {
        match self {
            Self::Request(request) | Self::Limit { request, .. } => request.view(),
        }
    }

    /// Decides without waiting, if the store can.
    pub(super) fn try_decide<S: Store>(
        &self,
        enforcer: &Enforcer<S>,
    ) -> Option<Result<Outcome<'static>, Error>> {
        match self {
            Self::Request(request) => {
                enforcer.try_decide(&request.view(), |decided| decided.map(Outcome::take))
            }
            Self::Limit { limit, values, cost, .. } => {
                let values = texts(values);
                let check = LimitCheck::new(limit, &values, *cost);
                enforcer.try_decide(&check, |decided| decided.map(Outcome::take))
            }
        }
    }

    pub(super) async fn decide<S: Store>(
        &self,
        enforcer: &Enforcer<S>,
    ) -> Result<Outcome<'static>, Error> {
        match self {
            Self::Request(request) => enforcer.decide(&request.view()).await,
            Self::Limit { limit, values, cost, .. } => {
                let values = texts(values);
                enforcer.decide(&LimitCheck::new(limit, &values, *cost)).await
            }
        }
    }
}

pub(super) fn texts(values: &[String]) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}
