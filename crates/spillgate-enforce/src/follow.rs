use std::sync::atomic::Ordering;
use std::time::Duration;

use spillgate_policy::store::Store;

use crate::Enforcer;

/// Bans, list entries and overrides of other nodes are in force here after this time, and one
/// round trip.
const INTERVAL: Duration = Duration::from_millis(400);

/// The same, if nobody has asked since the last time: no more than a call per second, with what is
/// checked each minute.
const IDLE: Duration = Duration::from_millis(1020);

impl<S: Store, R> Enforcer<S, R> {
    /// Keeps the gate up to date, for ever: with the other nodes of a shared store, whose bans, list
    /// entries, overrides and strikes count here too, and with overrides that end. Spawn it once per
    /// process. See [`Gate::follow`](spillgate_policy::Gate::follow).
    pub async fn follow(&self) {
        let mut version = 0;
        loop {
            // During an outage, what is known stands.
            if let Err(error) = self.gate.follow(&mut version).await {
                self.note_error(&error);
            }
            self.note_bans();
            self.note_steps();
            let is_busy = self.was_asked.swap(false, Ordering::Relaxed);
            let is_near = self.gate.store().is_in_process();
            tokio::time::sleep(if is_busy || is_near { INTERVAL } else { IDLE }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spillgate::{Clock, ManualClock};
    use spillgate_policy::store::Memory;
    use spillgate_policy::{Gate, Policy, Terms};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn in_process_too_the_policy_counts_again_after_an_override_has_ended() {
        let clock = ManualClock::default();
        let policy = "[[limit]]\nname = 'api'\nquota = '100/s'\n\
                      [[limit.override]]\ncaller = 'user:1'\nquota = '7/s'\n";
        let policy = Policy::from_toml(policy).unwrap();
        let gate = Arc::new(Gate::with_store(policy, Memory::new(clock.clone())).unwrap());
        let enforcer: Enforcer<_> = Enforcer::new(Arc::clone(&gate));
        let limit = async || gate.peek_limit("api", &["user:1"], 1).await.unwrap().limit();
        let second = Duration::from_secs(1);
        let terms = Terms::until(clock.now() + second);
        gate.set_override("api", &["user:1"], "9/s".parse().unwrap(), terms).await.unwrap();
        let check = async {
            tokio::time::sleep(second).await;
            assert_eq!(limit().await, 9, "it lasts");
            clock.advance(second);
            tokio::time::sleep(INTERVAL).await;
            assert_eq!(limit().await, 7);
        };
        tokio::select! {
            () = enforcer.follow() => unreachable!("it follows for ever"),
            () = check => {}
        }
    }
}
