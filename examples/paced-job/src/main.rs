//! A background job that paces itself to a rate.
//!
//! The job sends twelve records to a service that accepts ten per second, three at once. It does not poll or sleep:
//! `until_ready` returns when the next record may go. A caller that cannot wait long enough gets its answer at once,
//! with the exact time to retry.
//!
//! `cargo run -p paced-job` takes about a second.

use std::time::Duration;

use spillgate::{Clock, Error, Limiter};

const RECORDS: u32 = 12;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let pace: Limiter<str> = Limiter::new("10/s burst 3")?;
    println!("{RECORDS} records at {}:", pace.quota());

    let began = pace.clock().now();
    for record in 1..=RECORDS {
        match pace.until_ready("the service", Duration::from_secs(1)).await {
            Ok(_) => {
                let at = pace.clock().now().since(began).as_millis();
                println!("  {at:>4} ms  sent record {record}");
            }
            // Nobody else uses the service here, so nobody waits for a second.
            Err(denied) => println!("           gave up on record {record}: {denied:?}"),
        }
    }

    let hurry = Duration::from_millis(20);
    if let Err(denied) = pace.until_ready("the service", hurry).await {
        let wait = denied.retry_after().unwrap_or_default();
        println!("A caller that can wait only {hurry:?} is denied at once: retry in {wait:.1?}.");
    }
    Ok(())
}
