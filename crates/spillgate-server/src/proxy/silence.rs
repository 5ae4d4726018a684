use std::time::Duration;

use tokio::time::sleep;

/// Ends when this has been the same for so long, within a tenth of that. While it is `None`,
/// nobody is waited for.
pub(super) async fn silence(longest: Duration, said: impl Fn() -> Option<u64>) {
    const LOOKS: u32 = 10;
    let (mut seen, mut looks) = (None, 0);
    while looks < LOOKS {
        sleep(longest / LOOKS).await;
        let now = said();
        looks = if now.is_some() && now == seen { looks + 1 } else { 0 };
        seen = now;
    }
}
