//! What is true of a budget after any requests and responses.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use proptest::prelude::*;
use spillgate::Timestamp;

use super::state::{Ready, Sent, State};
use crate::headers::parse_at;
use crate::retry::RetryBudget;

#[derive(Clone, Debug)]
enum Event {
    Send {
        route: u8,
    },
    /// One of those in flight is answered with these limits.
    Answer {
        which: usize,
        limits: Vec<(u8, u8, u8)>,
    },
    /// One of those in flight fails, or was not sent after all.
    Fail {
        which: usize,
        is_sent: bool,
    },
    Wait {
        millis: u16,
    },
}

fn event() -> impl Strategy<Value = Event> {
    // Names, what remains, and seconds until the reset.
    let limits = prop::collection::vec((0..4_u8, 0..100_u8, 0..3_u8), 0..3);
    prop_oneof![
        4 => (0..3_u8).prop_map(|route| Event::Send { route }),
        3 => (any::<usize>(), limits).prop_map(|(which, limits)| Event::Answer { which, limits }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(which, is_sent)| Event::Fail { which, is_sent }),
        1 => (0..2_000_u16).prop_map(|millis| Event::Wait { millis }),
    ]
}

struct World {
    state: State,
    now: Timestamp,
    in_flight: Vec<(Arc<str>, Sent)>,
}

impl World {
    fn new() -> Self {
        let now = Timestamp::from_nanos(1_700_000_000_000_000_000);
        Self { state: State::new(None, RetryBudget::new(0.0), now), now, in_flight: Vec::new() }
    }

    fn take(&mut self, which: usize) -> Option<(Arc<str>, Sent)> {
        let which = which.checked_rem(self.in_flight.len())?;
        Some(self.in_flight.swap_remove(which))
    }

    fn answer(&mut self, which: usize, limits: &[(u8, u8, u8)]) {
        let Some((route, sent)) = self.take(which) else { return };
        let mut headers = HeaderMap::new();
        for (name, remaining, reset) in limits {
            let value = format!("\"{name}\";r={remaining};t={reset}");
            headers.append("ratelimit", value.parse().unwrap());
        }
        let info = parse_at(&headers, self.now);
        self.state.end(&route, true);
        self.state.learn(&route, sent.at, &info.limits, self.now, Duration::from_secs(60));
        self.state.accept(sent.at, self.now);
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Send { route } => {
                let route = self.state.route(&Arc::from(route.to_string()), self.now);
                if let Ready::Now(sent) = self.state.try_send(&route, self.now) {
                    self.in_flight.push((route, sent));
                }
            }
            Event::Answer { which, limits } => self.answer(*which, limits),
            Event::Fail { which, is_sent } => match self.take(*which) {
                Some((route, _)) if *is_sent => self.state.end(&route, false),
                Some((route, sent)) => self.state.unsend(&route, sent, self.now),
                None => {}
            },
            Event::Wait { millis } => self.now = self.now + Duration::from_millis((*millis).into()),
        }
    }
}

proptest! {
    #[test]
    fn if_no_request_is_in_flight_none_is_in_any_limit(
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut world = World::new();
        events.iter().for_each(|event| world.happen(event));
        // All others end, while the limits are still known.
        while let Some((route, _)) = world.in_flight.pop() {
            world.state.end(&route, false);
        }
        prop_assert_eq!(world.state.in_flight, 0);
        for (key, replica) in &world.state.replicas {
            prop_assert_eq!(replica.in_flight(), 0, "{:?}", key);
        }
    }
}
