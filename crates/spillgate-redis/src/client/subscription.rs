//! Failover events published by Sentinels.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::Msg;
use redis::aio::PubSub;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::address::Address;
use super::session::Plan;
use crate::backend::{BackendError, Fault};

/// An event of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SentinelEvent {
    /// A replica is about to become the master, or has just become it.
    Promotion {
        /// The master so far.
        from: Address,
        /// The replica.
        to: Address,
    },
    /// There is another master.
    Switched,
}

/// A replica was chosen, and is promoted within a tenth of a second.
const PROMOTING: &str = "+failover-state-send-slaveof-noone";
/// It was promoted. Other replicas may take a while to follow.
const PROMOTED: &str = "+promoted-slave";
/// The failover is complete.
const SWITCHED: &str = "+switch-master";

/// Pause before resubscribing.
const PAUSE: Duration = Duration::from_secs(1);

/// How often a silent connection is probed.
const PING: Duration = Duration::from_secs(5);

/// Forwards the events of a Sentinel, forever.
pub(super) async fn keep(
    plan: Arc<Plan>,
    sentinel: Address,
    service: String,
    events: mpsc::Sender<SentinelEvent>,
) {
    let mut logged = None;
    loop {
        let credentials = plan.credentials.refresh().await;
        let channels = [PROMOTING, PROMOTED, SWITCHED];
        let access = credentials.of_sentinel();
        match plan.connector.subscribe(&sentinel, access, &channels).await {
            Ok(subscription) => {
                logged = None;
                // Events may have been missed.
                let _ = events.try_send(SentinelEvent::Switched);
                let time_out = plan.options.connect_time_out;
                listen(subscription, &service, &events, time_out).await;
                debug!(%sentinel, "the subscription at a Sentinel has ended");
            }
            Err(error) => {
                note(&error, &mut logged);
            }
        }
        sleep(PAUSE).await;
    }
}

/// Returns when the connection is lost.
async fn listen(
    subscription: PubSub,
    service: &str,
    events: &mpsc::Sender<SentinelEvent>,
    time_out: Duration,
) {
    let (mut sink, mut messages) = subscription.split();
    loop {
        tokio::select! {
            message = messages.next() => {
                let Some(message) = message else { return };
                if let Some(event) = read(&message, service) {
                    // If the queue is full, one more says nothing new.
                    let _ = events.try_send(event);
                }
            }
            () = sleep(PING) => {
                let pinged = timeout(time_out, sink.ping::<redis::Value>()).await;
                // An error reply is a reply.
                if pinged.map_or(true, |answer| answer.is_err_and(|why| why.code().is_none())) {
                    return;
                }
            }
        }
    }
}

/// Logs once why a Sentinel cannot be subscribed to, if an operator has to act. One that is down is
/// one of several.
fn note(error: &BackendError, logged: &mut Option<Fault>) {
    let fault = error.fault();
    if !matches!(fault, Fault::Unreachable | Fault::TimedOut) && *logged != Some(fault) {
        *logged = Some(fault);
        warn!(
            %error,
            "failovers are not announced by this Sentinel: they are noticed within a second; let \
             its user `+subscribe` with `&*`"
        );
    }
}

fn read(message: &Msg, service: &str) -> Option<SentinelEvent> {
    let text = std::str::from_utf8(message.get_payload_bytes()).ok()?;
    parse(message.get_channel_name(), text, service)
}

/// `service ip port ip port` of a switch; `slave name ip port @ service ip port` of a replica.
fn parse(channel: &str, text: &str, service: &str) -> Option<SentinelEvent> {
    let words: Vec<_> = text.split(' ').collect();
    let address = |host: &str, port: &str| Some(Address::Tcp(host.to_owned(), port.parse().ok()?));
    match (channel, words.as_slice()) {
        (SWITCHED, [name, ..]) if *name == service => Some(SentinelEvent::Switched),
        (PROMOTING | PROMOTED, [_, _, host, port, "@", name, master, master_port])
            if *name == service =>
        {
            Some(SentinelEvent::Promotion {
                from: address(master, master_port)?,
                to: address(host, port)?,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_this_service_are_parsed() {
        let tcp = |host: &str, port| Address::Tcp(host.to_owned(), port);
        let promotion = "slave 10.0.0.2:6379 10.0.0.2 6379 @ main 10.0.0.1 6380";
        let event =
            SentinelEvent::Promotion { from: tcp("10.0.0.1", 6380), to: tcp("10.0.0.2", 6379) };
        assert_eq!(parse(PROMOTING, promotion, "main"), Some(event.clone()));
        assert_eq!(parse(PROMOTED, promotion, "main"), Some(event));
        let switch = "main 10.0.0.1 6380 10.0.0.2 6379";
        assert_eq!(parse(SWITCHED, switch, "main"), Some(SentinelEvent::Switched));
        for (channel, text) in [
            (PROMOTING, promotion.replace("main", "other")),
            (SWITCHED, switch.replace("main", "other")),
            (PROMOTING, promotion.replace("6380", "x")),
            (PROMOTING, "slave".to_owned()),
            ("+sdown", switch.to_owned()),
        ] {
            assert_eq!(parse(channel, &text, "main"), None, "{channel} {text}");
        }
    }
}
