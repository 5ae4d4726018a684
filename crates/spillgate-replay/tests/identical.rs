//! A replay decides as a live gate does.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use proptest::prelude::*;
use spillgate::{ManualClock, Timestamp};
use spillgate_policy::store::Memory;
use spillgate_policy::{Gate, Policy, RequestView};
use spillgate_replay::{Engine, EngineOptions, Input, InputOptions, Record, Source, Wanted};
use spillgate_testing::strategy::cases;

const POLICY: &str = r#"
block = ["203.0.113.4"]
allow = ["203.0.113.5"]

[identity]
trusted-proxies = ["10.0.0.0/8"]

[[limit]]
name = "all"
quota = "2/s burst 5"

[[limit]]
name = "login"
match = { path = "/login/{*rest}", method = "POST" }
per = "ip"
quota = "3/min"
algorithm = "sliding-window"
ban = { strikes = 4, window = "1min", duration = "30s" }

[[limit]]
name = "host"
match = { host = "a.example" }
per = "global"
quota = "4/s burst 6"
algorithm = "leaky-bucket"
mode = "shadow"

[[limit]]
name = "failures"
match = { path = "/users/{id}" }
per = ["caller", "path:id"]
quota = "2/min"
settle = { status = "4xx" }
"#;

/// A request of a history: nanoseconds after the one before, and what it is.
#[derive(Clone, Debug)]
struct Step {
    after: u64,
    peer: &'static str,
    method: &'static str,
    path: &'static str,
    host: &'static str,
    forwarded: Option<&'static str>,
    status: u16,
}

fn step() -> impl Strategy<Value = Step> {
    let after = prop_oneof![Just(0), 1_u64..2_000_000_000, 1_u64..200_000_000];
    let peers = ["203.0.113.7", "203.0.113.4", "203.0.113.5", "10.0.0.1", "2001:db8::1"];
    let paths = ["/", "/login/now", "/users/1", "/users/2", "/LOGIN/now", "/a%2fb"];
    let forwarded = [None, Some("203.0.113.8"), Some("203.0.113.9, 10.0.0.3")];
    (
        after,
        prop::sample::select(peers.to_vec()),
        prop::sample::select(&["GET", "POST", "PUT"][..]),
        prop::sample::select(paths.to_vec()),
        prop::sample::select(&["a.example", "b.example"][..]),
        prop::sample::select(forwarded.to_vec()),
        prop::sample::select(&[200_u16, 404, 500][..]),
    )
        .prop_map(|(after, peer, method, path, host, forwarded, status)| {
            let forwarded = forwarded.filter(|_| peer.starts_with("10."));
            Step { after, peer, method, path, host, forwarded, status }
        })
}

/// What was decided, in words.
fn words(outcome: &spillgate_policy::Outcome<'_>) -> String {
    let limits: Vec<_> = outcome
        .limits()
        .map(|it| format!("{} {} {:?}", it.name(), it.counted(), it.decision().remaining()))
        .collect();
    format!("{:?} {:?} {limits:?}", outcome.answer(), outcome.retry_after())
}

/// What a live gate decides about the history.
async fn live(times: &[u64], steps: &[Step]) -> Vec<String> {
    let clock = ManualClock::new(Timestamp::from_nanos(times[0]));
    let policy = Policy::from_toml(POLICY).unwrap();
    let gate = Gate::with_store(policy, Memory::new(clock.clone())).unwrap();
    let mut all = Vec::new();
    for (time, step) in times.iter().zip(steps) {
        clock.set(Timestamp::from_nanos(*time));
        let mut request = http::Request::builder().method(step.method).uri(step.path);
        request = request.header("host", step.host);
        if let Some(forwarded) = step.forwarded {
            request = request.header("x-forwarded-for", forwarded);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let view = RequestView::from_parts(&parts, Some(step.peer.parse().unwrap()));
        let mut outcome = gate.decide(&view).await.unwrap();
        let status = StatusCode::from_u16(step.status).unwrap();
        let settled = gate.settle(&mut outcome, status, &HeaderMap::new()).await;
        assert!(settled.error.is_none());
        all.push(words(&outcome));
    }
    all
}

/// What a replay of a log decides.
fn replayed(log: String) -> Vec<String> {
    let policy = Policy::from_toml(POLICY).unwrap();
    let wanted = Wanted::new(policy.headers());
    let source = Source::new("log", std::io::Cursor::new(log), None).unwrap();
    let input = Input::new(vec![source], &wanted, InputOptions::default()).unwrap();
    let (mut policy, mut engine) = (Some(policy), None);
    let mut all = Vec::new();
    let each = |record: &Record<'_>| -> Result<(), std::io::Error> {
        let engine = engine.get_or_insert_with(|| {
            let (policy, options) = (policy.take().unwrap(), EngineOptions::default());
            Engine::new(policy, wanted.clone(), record.time, options).unwrap()
        });
        engine.decide(record, |_, _, outcome| all.push(words(outcome))).unwrap();
        Ok(())
    };
    input.read(each, |_| ()).unwrap();
    all
}

/// Times of the steps, each later than the one before.
fn times(steps: &[Step]) -> Vec<u64> {
    let mut now = Timestamp::from_secs(1_794_889_960).as_nanos();
    let next = |step: &Step| {
        now += step.after + 1;
        now
    };
    steps.iter().map(next).collect()
}

fn json(time: u64, step: &Step) -> String {
    let line = serde_json::json!({
        "ts": time, "remote_ip": step.peer, "method": step.method, "uri": step.path,
        "host": step.host, "status": step.status,
        "headers": { "X-Forwarded-For": step.forwarded.into_iter().collect::<Vec<_>>() },
    });
    format!("{line}\n")
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn decisions_are_those_of_a_live_gate(
        steps in prop::collection::vec(step(), 1..120),
        order in any::<prop::sample::Index>(),
    ) {
        let times = times(&steps);
        let mut lines: Vec<_> = times.iter().zip(&steps).map(|(at, it)| json(*at, it)).collect();
        // Disorder within the window makes no difference: two lines change places.
        let place = order.index(lines.len());
        let other = (place..lines.len())
            .take_while(|other| times[*other] - times[place] < 50_000_000_000)
            .last()
            .unwrap_or(place);
        lines.swap(place, other);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let live = runtime.block_on(live(&times, &steps));
        prop_assert_eq!(replayed(lines.concat()), live);
    }
}

#[test]
fn requests_of_one_second_are_spread_over_it() {
    let counts = [1_u64, 4, 3];
    let step = |after| Step {
        after,
        peer: "203.0.113.7",
        method: "GET",
        path: "/",
        host: "a.example",
        forwarded: None,
        status: 200,
    };
    let (mut log, mut times) = (String::new(), Vec::new());
    for (second, count) in (0..).zip(counts) {
        for place in 0..count {
            let start = Timestamp::from_secs(1_794_889_960 + second);
            let offset = Duration::from_nanos(place * 1_000_000_000 / count);
            times.push((start + offset).as_nanos());
            log += &format!(
                "a.example:80 203.0.113.7 - - [17/Nov/2026:04:32:{} +0000] \"GET / HTTP/1.1\" 200 5\n",
                40 + second
            );
        }
    }
    let steps = vec![step(0); times.len()];
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(replayed(log), runtime.block_on(live(&times, &steps)));
}
