//! Finds the address of a server, through Sentinels if need be.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::{Cmd, Value};
use tokio::sync::mpsc;

use super::AbortOnDrop;
use super::address::{Address, Target};
use super::connection::Connection;
use super::credentials::Credentials;
use super::failure::Failure;
use super::session::Plan;
use super::subscription::{self, SentinelEvent};
use crate::backend::{BackendError, Fault, Result};

impl Target {
    /// The current address. Several if none is more likely, the present one first.
    pub(super) async fn find(
        &self,
        plan: &Plan,
        credentials: &Credentials,
        present: Option<&Address>,
    ) -> Result<Vec<Address>> {
        match self {
            Self::One(address) => Ok(vec![address.clone()]),
            Self::Cluster(seeds) => Ok(seeds.clone()),
            Self::Sentinel { sentinels, service } => {
                let ask = |sentinel| ask(plan, credentials, sentinel, service);
                masters(sentinels, ask, present)
                    .await
                    .map_err(|problems| unknown(service, problems))
            }
        }
    }

    /// Subscribes to failovers, until the result is dropped.
    pub(super) fn subscribe(
        &self,
        plan: &Arc<Plan>,
        events: &mpsc::Sender<SentinelEvent>,
    ) -> Vec<AbortOnDrop> {
        let Self::Sentinel { sentinels, service } = self else { return Vec::new() };
        let subscribe = |sentinel: &Address| {
            let (plan, service) = (plan.clone(), service.clone());
            AbortOnDrop::spawn(subscription::keep(plan, sentinel.clone(), service, events.clone()))
        };
        sentinels.iter().map(subscribe).collect()
    }
}

/// Asks all Sentinels concurrently, until a majority agrees or all have answered, and returns the
/// address named most often, or the errors if none names one.
async fn masters<'s, F: Future<Output = Result<Address>>>(
    sentinels: &'s [Address],
    ask: impl Fn(&'s Address) -> F,
    present: Option<&Address>,
) -> Result<Vec<Address>, Vec<(usize, BackendError)>> {
    let ask = async |(place, sentinel)| (place, ask(sentinel).await);
    let mut asked: FuturesUnordered<_> = sentinels.iter().enumerate().map(ask).collect();
    let (mut named, mut problems) = (Vec::new(), Vec::new());
    while let Some((place, answer)) = asked.next().await {
        match answer {
            Ok(master) => named.push((place, master)),
            Err(error) => problems.push((place, error)),
        }
        let (often, most) = most_named(&mut named, present);
        if often * 2 > sentinels.len() {
            return Ok(most);
        }
    }
    match most_named(&mut named, present) {
        (0, _) => Err(problems),
        (_, most) => Ok(most),
    }
}

/// No Sentinel knows the master.
fn unknown(service: &str, mut problems: Vec<(usize, BackendError)>) -> BackendError {
    problems.sort_by_key(|(place, _)| *place);
    let fault = problems.first().map_or(Fault::Unreachable, |(_, error)| error.fault());
    let errors: Vec<_> = problems.iter().map(|(_, error)| error.to_string()).collect();
    let text = format!("no Sentinel knows the master of `{service}`: {}", errors.join("; "));
    BackendError::new(fault, text)
}

/// A connection per Sentinel, kept between two questions.
#[derive(Default)]
pub(super) struct SentinelConnections(Mutex<HashMap<Address, Arc<Connection>>>);

impl SentinelConnections {
    async fn ask(
        &self,
        plan: &Plan,
        credentials: &Credentials,
        sentinel: &Address,
        question: &Cmd,
    ) -> Result<Value> {
        let time_out = plan.connector.time_out;
        let known = self.known().get(sentinel).cloned();
        if let Some(known) = known {
            match known.send(question, time_out).await {
                Ok(answer) => return Ok(answer),
                Err(_) => self.known().remove(sentinel),
            };
        }
        let (access, signals) = (credentials.of_sentinel(), Arc::default());
        let connection = Arc::new(plan.connector.open(sentinel, access, 0, &signals).await?);
        let answer = connection.send(question, time_out).await;
        let answer = answer.map_err(|error| Failure::of(sentinel, &error).error)?;
        self.known().insert(sentinel.clone(), connection);
        Ok(answer)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Address, Arc<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(
    plan: &Plan,
    credentials: &Credentials,
    sentinel: &Address,
    service: &str,
) -> Result<Address> {
    let mut question = Cmd::new();
    question.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(service);
    let answer = plan.sentinels.ask(plan, credentials, sentinel, &question).await?;
    let found = redis::from_redis_value(answer);
    match found.map_err(|error| Failure::of(sentinel, &error.into()).error)? {
        Some((host, port)) => Ok(Address::Tcp(host, port)),
        None => {
            let text = format!("{sentinel} knows no service `{service}`");
            Err(BackendError::new(Fault::Misconfigured, text))
        }
    }
}

/// The number of votes of the addresses named most often, and these addresses: the present one
/// first, then in the order of the Sentinels.
fn most_named(named: &mut [(usize, Address)], present: Option<&Address>) -> (usize, Vec<Address>) {
    named.sort_by_key(|(place, _)| *place);
    let often = |address: &Address| named.iter().filter(|(_, other)| other == address).count();
    let most = named.iter().map(|(_, address)| often(address)).max().unwrap_or(0);
    let mut addresses = Vec::new();
    for (_, address) in named.iter().filter(|(_, address)| often(address) == most) {
        if !addresses.contains(address) {
            addresses.push(address.clone());
        }
    }
    addresses.sort_by_key(|address| Some(address) != present);
    (most, addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows from what Sentinels name, in the order in which they answer.
    fn most(named: &[(usize, &str)], present: Option<&str>) -> (usize, Vec<Address>) {
        let mut named: Vec<_> = named.iter().map(|(place, host)| (*place, address(host))).collect();
        most_named(&mut named, present.map(address).as_ref())
    }

    fn address(host: &str) -> Address {
        Address::Tcp(host.to_owned(), 6379)
    }

    #[test]
    fn the_majority_counts_in_any_order_of_replies() {
        assert_eq!(most(&[], Some("a")), (0, vec![]));
        assert_eq!(most(&[(0, "old"), (2, "new"), (1, "new")], None), (2, vec![address("new")]));
        assert_eq!(
            most(&[(0, "new"), (1, "old"), (2, "new")], Some("old")),
            (2, vec![address("new")])
        );
    }

    #[test]
    fn of_those_named_as_often_the_present_one_is_first_and_then_the_order_counts() {
        let named = [(2, "c"), (1, "b"), (0, "a")];
        let hosts = |hosts: [&str; 3]| (1, hosts.map(address).to_vec());
        assert_eq!(most(&named, None), hosts(["a", "b", "c"]));
        assert_eq!(most(&named, Some("c")), hosts(["c", "a", "b"]));
        assert_eq!(most(&named, Some("d")), hosts(["a", "b", "c"]));
    }
}
