use spillgate::Timestamp;

/// The time of Redis, as a reply reports it.
///
/// Redis reads its clock after the call is sent and before the reply is received. So however long
/// the reply took, its time is no later than [`latest`](Self::latest), and no earlier than
/// [`earliest`](Self::earliest). In a Cluster each shard has its own clock: a caller is judged by
/// the sample that came with its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockSample {
    /// When the call was sent, by this node's clock.
    pub(crate) sent: Timestamp,
    /// When the reply was received, by this node's clock.
    pub(crate) received: Timestamp,
    /// When it was decided, by the clock of Redis.
    pub(crate) now: Timestamp,
}

/// The Redis clock may gain one in so many nanoseconds on this node's. Free-running clocks differ
/// by less, and so do clocks that are slewed by the usual half of that.
const DRIFT: u64 = 1000;

impl ClockSample {
    /// The latest time of Redis when this node's is `local`.
    #[inline]
    pub(crate) fn latest(&self, local: Timestamp) -> Timestamp {
        // A clock that goes back counts as standing still.
        let elapsed = local.as_nanos().saturating_sub(self.sent.as_nanos());
        Timestamp::from_nanos(self.now.as_nanos() + elapsed + elapsed.div_ceil(DRIFT))
    }

    /// The earliest time of Redis when this node's is `local`, if both clocks run alike: for
    /// everything but admission.
    #[inline]
    pub(crate) fn earliest(&self, local: Timestamp) -> Timestamp {
        self.now + local.since(self.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: ClockSample = ClockSample {
        sent: Timestamp::from_secs(50),
        received: Timestamp::from_secs(51),
        now: NOW,
    };

    const NOW: Timestamp = Timestamp::from_secs(1000);

    #[test]
    fn redis_time_goes_on_a_little_faster_than_this_nodes() {
        let later = Timestamp::from_nanos(50_000_000_000 + 2_000_001);
        assert_eq!(SEEN.latest(SEEN.sent), SEEN.now);
        assert_eq!(SEEN.latest(later).as_nanos(), 1_000_000_000_000 + 2_000_001 + 2_001);
    }

    #[test]
    fn it_may_have_been_read_just_before_the_answer_was_heard() {
        assert_eq!(SEEN.earliest(SEEN.received), NOW);
        assert_eq!(SEEN.earliest(Timestamp::from_secs(53)), Timestamp::from_secs(1002));
    }

    #[test]
    fn it_never_goes_back_and_ends_where_time_does() {
        assert_eq!(SEEN.latest(Timestamp::ZERO), SEEN.now);
        assert_eq!(SEEN.earliest(Timestamp::ZERO), SEEN.now);
        assert_eq!(SEEN.latest(Timestamp::MAX), Timestamp::MAX);
    }
}
