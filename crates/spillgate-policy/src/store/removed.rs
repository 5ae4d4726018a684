use std::sync::Arc;
use std::time::Duration;

use spillgate::Timestamp;

use super::{LimitSpec, SavedLimit};

/// For how long what was spent under a limit is kept once the limit is gone.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// For how many callers there is room, of all such limits together: 16 bytes each.
const MOST_CALLERS: usize = 1_000_000;

/// What was spent under limits that are gone, for a while: a limit that was removed by mistake,
/// or made to count something else, forgives nobody when it comes back.
#[derive(Clone, Debug, Default)]
pub(super) struct RemovedLimits(Vec<Removed>);

#[derive(Clone, Debug)]
struct Removed {
    limit: Arc<SavedLimit>,
    /// When it went.
    at: Timestamp,
}

impl RemovedLimits {
    /// Keeps what was spent under a limit that went at some time. Its words are times of the
    /// clock that reads `now`.
    pub(super) fn keep(&mut self, mut limit: SavedLimit, at: Timestamp, now: Timestamp) {
        limit.spent.retain_spent(limit.algorithm, now, MOST_CALLERS);
        if limit.spent.is_empty() {
            return;
        }
        // What went earlier under this name was there before it: it counts no more.
        self.0.retain(|kept| !kept.limit.is_like(&limit.name, &limit.per, limit.algorithm));
        self.0.push(Removed { limit: Arc::new(limit), at });
        self.forget(now);
    }

    /// What was spent under a limit that comes back.
    pub(super) fn take(&mut self, spec: &LimitSpec, now: Timestamp) -> Option<Arc<SavedLimit>> {
        self.forget(now);
        let is_it = |kept: &Removed| kept.limit.is_like(&spec.name, &spec.per, spec.algorithm);
        let place = self.0.iter().position(is_it)?;
        Some(self.0.remove(place).limit)
    }

    /// All that is kept, with how long ago it went.
    pub(super) fn save(&mut self, now: Timestamp) -> Vec<SavedLimit> {
        self.forget(now);
        let saved = self.0.iter().map(|kept| {
            let mut limit = SavedLimit::clone(&kept.limit);
            limit.spent.retain_spent(limit.algorithm, now, MOST_CALLERS);
            SavedLimit { removed_for: Some(now.since(kept.at)), ..limit }
        });
        saved.collect()
    }

    /// Forgets what went too long ago; then, for want of room, what went first. What went last
    /// stays: it fits, but for accounts.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.0.retain(|kept| now.since(kept.at) <= KEPT_FOR);
        let mut room = MOST_CALLERS;
        let newest_first = self.0.iter().rev();
        let kept = newest_first.take_while(|kept| {
            let callers = kept.limit.spent.len().min(MOST_CALLERS);
            let fits = callers <= room;
            room = room.saturating_sub(callers);
            fits
        });
        let too_many = self.0.len() - kept.count();
        self.0.drain(..too_many);
    }
}

#[cfg(test)]
mod tests {

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use spillgate::account::SavedAccount;
    use spillgate::algorithm::Word;
    use spillgate::{
        AlgorithmKind, Fingerprint, Limiter, ManualClock, Quota, Saved, SavedCaller, SavedOwn,
    };

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000_000_000);

    /// A limit with so many callers, who owe between a second and as many as there are.
    fn limit(name: &str, callers: u64) -> SavedLimit {
        let limiter = Limiter::<str>::builder("1/s burst 3000000").clock(ManualClock::new(NOW));
        let mut spent: Saved = limiter.capacity(1).build().unwrap().save();
        spent.tables[0].callers = (1..=callers)
            .map(|caller| {
                let word = Word::from_bits(NOW.as_nanos() + caller * 1_000_000_000);
                (Fingerprint::from_bits(caller), word)
            })
            .collect();
        let per = "caller".to_owned();
        SavedLimit::new(name.to_owned(), per, AlgorithmKind::TokenBucket, spent)
    }

    fn callers(kept: &RemovedLimits) -> Vec<usize> {
        kept.0.iter().map(|kept| kept.limit.spent.len()).collect()
    }

    #[test]
    fn there_is_room_for_so_many_callers_and_the_first_to_go_is_forgotten_first() {
        let mut kept = RemovedLimits::default();
        for (name, count) in [("a", 600_000), ("b", 300_000), ("c", 200_000)] {
            kept.keep(limit(name, count), NOW, NOW);
        }
        assert_eq!(callers(&kept), [300_000, 200_000]);
        kept.keep(limit("d", 0), NOW, NOW);
        assert_eq!(callers(&kept), [300_000, 200_000], "nobody had spent anything");
        kept.keep(limit("d", 1_000_100), NOW, NOW);
        assert_eq!(callers(&kept), [MOST_CALLERS]);
        let mut overridden = limit("e", 1_000_100);
        let (caller, word) = overridden.spent.tables[0].callers[0];
        let quota = overridden.spent.tables[0].quota;
        let own = Some(SavedOwn { until: None });
        let (debt, at, piles) = (Word::from_bits(0), NOW, Vec::new());
        let account = SavedAccount { quota, word, debt, at, since: at, piles };
        let caller = SavedCaller { caller, tier: None, own, account };
        overridden.spent.accounts.push(caller);
        kept.keep(overridden, NOW, NOW);
        assert_eq!(callers(&kept), [MOST_CALLERS], "an account takes a place, too");
        kept.0.clear();
        kept.keep(limit("d", 1_000_100), NOW, NOW);
        let words = kept.0[0].limit.spent.tables[0].callers.iter();
        let least = words.map(|(_, word)| word.to_bits()).min().unwrap();
        let owed = least - NOW.as_nanos();
        assert_eq!(owed, 101 * 1_000_000_000, "those who owe most are kept");
    }

    #[test]
    fn what_went_too_long_ago_is_forgotten_and_so_is_what_is_refilled() {
        let mut kept = RemovedLimits::default();
        kept.keep(limit("a", 10), NOW, NOW);
        kept.keep(limit("b", 5_000), NOW, NOW);
        let saved = kept.save(NOW + Duration::from_secs(4));
        assert_eq!(saved[0].spent.len(), 6);
        assert_eq!(saved[0].removed_for, Some(Duration::from_secs(4)));
        assert_eq!(kept.save(NOW + KEPT_FOR).len(), 2);
        assert!(kept.save(NOW + KEPT_FOR + Duration::from_nanos(1)).is_empty());
    }

    proptest! {
        /// As a file that was forged may say.
        #[test]
        fn any_words_can_be_kept(
            kind in select(&AlgorithmKind::ALL[..]),
            (amount, period, burst) in (1..u64::MAX, 1..u64::MAX, 1..u64::MAX),
            words in vec(any::<u64>(), 1..20),
            (then, now) in (any::<u64>(), any::<u64>()),
        ) {
            let quota = Quota::per(amount, Duration::from_nanos(period)).burst(burst).build();
            let Ok(quota) = quota else { return Ok(()) };
            let mut limit = limit("l", 0);
            let table = &mut limit.spent.tables[0];
            table.quota = quota;
            let pair = |word: &u64| (Fingerprint::from_bits(*word | 1), Word::from_bits(*word));
            table.callers = words.iter().map(pair).collect();
            limit.algorithm = kind;
            let (then, now) = (Timestamp::from_nanos(then), Timestamp::from_nanos(now));
            limit.spent.rebase(kind, then, now);
            limit.spent.retain_spent(kind, now, 5);
            let mut kept = RemovedLimits::default();
            kept.keep(limit, now, now);
            prop_assert!(callers(&kept).iter().sum::<usize>() <= 5);
        }
    }
}
