//! A far side that announces nothing but `Retry-After`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Response, StatusCode};
use spillgate::Limiter;
use spillgate_client::ClientLayer;
use tower::Layer;

use crate::common::{Body, Dice, Far, TokioClock, distant, far, hurry};
use spillgate::{Clock, Timestamp};

/// What the far side saw: when each request arrived, and whether it was refused.
type Seen = Arc<Mutex<Vec<(Timestamp, bool)>>>;

/// Refuses for a whole second what exceeds a quota, as a service that bans for a while.
fn banning(quota: &str, clock: TokioClock) -> (Far, Seen) {
    let limiter = Limiter::<str>::builder(quota).clock(clock).capacity(1).build().unwrap();
    let (limiter, seen) = (Arc::new(limiter), Seen::default());
    let banned_until = Arc::new(Mutex::new(Timestamp::ZERO));
    let sight = Arc::clone(&seen);
    let service = far(move |_| {
        let now = clock.now();
        let mut banned_until = banned_until.lock().unwrap();
        let is_banned = now < *banned_until;
        let is_refused = is_banned || limiter.check("").is_denied();
        if is_refused && !is_banned {
            *banned_until = now + Duration::from_secs(1);
        }
        sight.lock().unwrap().push((now, is_refused));
        let mut response = Response::new(Body::from("hello"));
        if is_refused {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert("retry-after", "1".parse().unwrap());
        }
        std::future::ready(response)
    });
    (service, seen)
}

#[tokio::test(start_paused = true)]
async fn a_far_side_that_announces_only_retry_after_sees_no_storm() {
    let (clock, dice) = (TokioClock::start(), Dice::new(3));
    let (service, seen) = banning("100/s burst 20", clock);
    let far = distant(service, Duration::from_millis(5), Duration::from_millis(40), dice.clone());
    let layer = ClientLayer::builder().clock(clock).random(move || dice.roll()).build().unwrap();
    hurry(layer.layer(far), 1_000, Duration::from_secs(60)).await;

    let seen = seen.lock().unwrap();
    let refused = seen.iter().filter(|(_, is_refused)| *is_refused).count();
    // The busiest tenth of a second after the first one: what the quota allows, and a few more.
    let busiest = seen.iter().map(|(begin, _)| {
        let end = *begin + Duration::from_millis(100);
        seen.iter().filter(|(at, _)| at >= begin && *at < end).count()
    });
    let busiest = busiest.max().unwrap();
    println!("{} requests, {refused} refused, {busiest} at most in 100 ms", seen.len());
    assert!(seen.len() > 1_000, "{}", seen.len());
    assert!(refused * 10 < seen.len(), "{refused} of {}", seen.len());
    assert!(busiest <= 60, "{busiest}");
    // While it is blocked, it sees at most what was in flight.
    let mut during_block = 0;
    let mut blocked_until = Timestamp::ZERO;
    for (at, is_refused) in seen.iter() {
        if *at < blocked_until {
            during_block += 1;
            assert!(during_block <= 40, "{during_block} requests while blocked");
        } else if *is_refused {
            (blocked_until, during_block) = (*at + Duration::from_secs(1), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_block_the_first_request_is_alone() {
    let clock = TokioClock::start();
    let seen = Seen::default();
    let sight = Arc::clone(&seen);
    let began = clock.now();
    // Refuses everything for ten seconds.
    let service = far(move |_| {
        let now = clock.now();
        let is_refused = now < began + Duration::from_secs(10);
        sight.lock().unwrap().push((now, is_refused));
        let mut response = Response::new(Body::default());
        if is_refused {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response.headers_mut().insert("retry-after", "2".parse().unwrap());
        }
        std::future::ready(response)
    });
    let latency = Duration::from_millis(20);
    let far = distant(service, latency, latency, Dice::new(1));
    let layer = ClientLayer::builder().clock(clock).random(|| 0.5).build().unwrap();
    hurry(layer.layer(far), 1_000, Duration::from_secs(15)).await;
    let seen = seen.lock().unwrap();
    let refused: Vec<_> = seen.iter().filter(|(_, is_refused)| *is_refused).collect();
    // One finds out, every two seconds and a bit.
    assert!((4..=6).contains(&refused.len()), "{refused:?}");
    // Then one, two, four, …: no more than double per round trip.
    let first = seen[refused.len()].0;
    for round in 0..6_u32 {
        let end = first + Duration::from_millis(40) * round + Duration::from_millis(20);
        let arrived = seen.iter().filter(|(at, _)| *at >= first && *at <= end).count();
        assert!(arrived < 2_usize.pow(round + 1), "{arrived} in {round} round trips");
    }
}

#[tokio::test(start_paused = true)]
async fn a_far_side_that_always_says_retry_now_is_not_hammered() {
    for headers in
        [&[("retry-after", "0")][..], &[], &[("ratelimit", "\"a\";r=0;t=0"), ("retry-after", "0")]]
    {
        let clock = TokioClock::start();
        let seen = Seen::default();
        let sight = Arc::clone(&seen);
        let headers = headers.to_vec();
        let service = far(move |_| {
            sight.lock().unwrap().push((clock.now(), true));
            let mut response = Response::new(Body::default());
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            for (name, value) in &headers {
                response.headers_mut().insert(*name, value.parse().unwrap());
            }
            std::future::ready(response)
        });
        let millisecond = Duration::from_millis(1);
        let far = distant(service, millisecond, millisecond, Dice::new(1));
        let layer = ClientLayer::builder().clock(clock).random(|| 0.5).build().unwrap();
        hurry(layer.layer(far), 1_000, Duration::from_secs(60)).await;
        let seen = seen.lock().unwrap().len();
        assert!((3..=20).contains(&seen), "{seen} requests in a minute");
    }
}
