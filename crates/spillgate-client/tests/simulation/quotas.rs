//! In front of a Spillgate gate the quota is used, and next to nothing is refused.

use std::time::Duration;

use spillgate::Quota;
use spillgate_client::ClientLayer;
use spillgate_tower::Headers;
use tower::Layer;

use crate::common::{Dice, Tally, TokioClock, distant, gated, hurry};

const TASKS: usize = 1_000;
const TIME: Duration = Duration::from_secs(60);

fn families() -> [(&'static str, Headers); 3] {
    let default = Headers::default();
    [
        ("both", default),
        ("RateLimit", default.x_rate_limit(false)),
        ("X-RateLimit", default.rate_limit(false)),
    ]
}

async fn run(quota: &str, algorithm: &str, headers: Headers, own: bool, network: [u64; 2]) -> Tally {
    let clock = TokioClock::start();
    let dice = Dice::new(7);
    let [least, most] = network.map(Duration::from_millis);
    let far = distant(gated(quota, algorithm, headers, clock), least, most, dice.clone());
    let builder = ClientLayer::builder().clock(clock).random(move || dice.roll()).max_retries(0);
    let builder = if own { builder.quota(quota) } else { builder };
    hurry(builder.build().unwrap().layer(far), TASKS, TIME).await
}

#[tokio::test(start_paused = true)]
async fn explore() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window", "leaky-bucket", "interval-bucket", "first-hit-window"] {
        for quota in ["100/s", "100/s burst 20", "1000/s burst 100", "600/min", "20/s"] {
            let parsed: Quota = quota.parse().unwrap();
            if algorithm.contains("window") && quota.contains("burst") { continue; }
            let all = parsed.rate() * TIME.as_secs_f64();
            for (family, headers) in families() {
                for own in [false, true] {
                    let tally = run(quota, algorithm, headers, own, [5, 40]).await;
                    println!("{algorithm:>16} {quota:>18} {family:>12} own={own:5} used {:.3} refused {:.4} {tally:?}",
                        tally.passed as f64 / all, tally.refused as f64 / tally.sent() as f64);
                }
            }
        }
    }
}
