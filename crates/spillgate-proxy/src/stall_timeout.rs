use std::time::Duration;

use tokio::time::sleep;

/// Ready when `progress` has been the same for `limit`, within a tenth of that. While it is
/// `None`, nothing is expected.
pub(super) async fn stalled(limit: Duration, progress: impl Fn() -> Option<u64>) {
    const SAMPLES: u32 = 10;
    let (mut seen, mut same) = (None, 0);
    while same < SAMPLES {
        sleep(limit / SAMPLES).await;
        let now = progress();
        same = if now.is_some() && now == seen { same + 1 } else { 0 };
        seen = now;
    }
}
