use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis::Cmd;
use tokio::sync::mpsc;

use super::address::Address;
use super::credentials::Credentials;
use super::failure::Failure;
use super::session::Plan;
use super::subscription::{self, News};
use super::task::Task;
use crate::engine::{EngineError, Fault};

/// Where a server is to be found.
#[derive(Debug)]
pub(super) enum Whereabouts {
    /// Always there.
    Fixed(Address),
    /// Where Sentinels say.
    Asked(Sentinels),
}

/// Those who know which server is the master of a service.
#[derive(Debug)]
pub(super) struct Sentinels {
    addresses: Vec<Address>,
    service: String,
    /// Who answered last, and is asked first.
    first: AtomicUsize,
}

impl Whereabouts {
    /// The address now.
    pub(super) async fn find(
        &self,
        plan: &Plan,
        credentials: &Credentials,
    ) -> Result<Address, EngineError> {
        match self {
            Self::Fixed(address) => Ok(address.clone()),
            Self::Asked(sentinels) => sentinels.master(plan, credentials).await,
        }
    }

    /// Hears of failovers, as long as what this returns is kept.
    pub(super) fn subscribe(&self, plan: &Arc<Plan>, news: &mpsc::Sender<News>) -> Vec<Task> {
        let Self::Asked(sentinels) = self else { return Vec::new() };
        let subscribe = |sentinel: &Address| {
            let (plan, service) = (plan.clone(), sentinels.service.clone());
            Task::spawn(subscription::keep(plan, sentinel.clone(), service, news.clone()))
        };
        sentinels.addresses.iter().map(subscribe).collect()
    }
}

impl Sentinels {
    pub(super) fn new(addresses: Vec<Address>, service: String) -> Self {
        Self { addresses, service, first: AtomicUsize::new(0) }
    }

    /// Asks one after the other until one knows.
    async fn master(&self, plan: &Plan, credentials: &Credentials) -> Result<Address, EngineError> {
        let first = self.first.load(Ordering::Relaxed);
        let mut problems = Vec::new();
        for place in (0..self.addresses.len()).map(|turn| (first + turn) % self.addresses.len()) {
            match self.ask(plan, credentials, &self.addresses[place]).await {
                Ok(master) => {
                    self.first.store(place, Ordering::Relaxed);
                    return Ok(master);
                }
                Err(error) => problems.push(error),
            }
        }
        let fault = problems.first().map_or(Fault::Unreachable, EngineError::fault);
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let text =
            format!("no Sentinel knows the master of `{}`: {}", self.service, told.join("; "));
        Err(EngineError::new(fault, text))
    }

    async fn ask(
        &self,
        plan: &Plan,
        credentials: &Credentials,
        sentinel: &Address,
    ) -> Result<Address, EngineError> {
        let mut question = Cmd::new();
        question.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.service);
        let answer = plan.connector.ask(sentinel, credentials.of_sentinel(), &question).await?;
        let found = redis::from_redis_value(answer);
        match found.map_err(|error| Failure::of(sentinel, &error.into()).error)? {
            Some((host, port)) => Ok(Address::Tcp(host, port)),
            None => {
                let text = format!("{sentinel} knows no service `{}`", self.service);
                Err(EngineError::new(Fault::Misconfigured, text))
            }
        }
    }
}
