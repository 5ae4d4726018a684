use std::fmt::Write;
use std::time::Duration;

use crate::simulation::random::Random;

/// What a simulation is about. All of it follows from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) nodes: u32,
    /// False if nodes learn from Redis how many there are.
    pub(crate) is_count_configured: bool,
    pub(crate) limits: Vec<PlannedLimit>,
    pub(crate) users: u64,
    /// How many clients call each node, one call after the other.
    pub(crate) clients: u64,
    /// The longest pause of a client between two calls, in milliseconds.
    pub(crate) pause: u64,
    /// All clients call at the same moments, so many milliseconds apart; 0 if they do not.
    pub(crate) rhythm: u64,
    /// How many calls a client makes at most before it pauses.
    pub(crate) volley: u64,
    pub(crate) most_cost: u64,
    /// Of a hundred calls, how many cost another amount in the end.
    pub(crate) settled: u64,
    /// Of a hundred calls, how many are given up after they have been allowed.
    pub(crate) cancelled: u64,
    pub(crate) lasts: Duration,
    pub(crate) network: Network,
    /// How often something breaks.
    pub(crate) crashes: u64,
    pub(crate) partitions: u64,
    /// How often a shard is replaced by a replica, and how far that is behind.
    pub(crate) failovers: u64,
    pub(crate) lag: Duration,
    /// What the first limit becomes on one node after the other.
    pub(crate) change: Option<PlannedLimit>,
    /// How often Redis answers nobody for a while, and for how long at most.
    pub(crate) stalls: u64,
    pub(crate) longest_stall: Duration,
    /// What nodes do that are not answered.
    pub(crate) outage: &'static str,
    /// How far a node's clock is from the right pace, at most.
    pub(crate) drift_ppm: i64,
    pub(crate) flaw: Option<Flaw>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedLimit {
    /// How long a token takes to be refilled.
    pub(crate) interval: Duration,
    pub(crate) burst: u64,
    pub(crate) is_leased: bool,
    pub(crate) algorithm: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// In milliseconds, each way.
    pub(crate) fastest: u64,
    pub(crate) slowest: u64,
    /// Of a hundred messages, how many are lost.
    pub(crate) lost: u64,
    /// Of a hundred, how many take ten times as long.
    pub(crate) late: u64,
}

/// What no program may do, to see that it would be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A state is put in place of another without looking which is there.
    CarelessExchange,
    /// Permits are granted whether or not they are free.
    GenerousPermits,
    /// Permits are not given back that nobody has got.
    NoRevokes,
    /// A node believes that time passes at a tenth of its pace, so that slices do not melt.
    SlowClocks,
    /// A node that is not answered does not know what callers had spent.
    NoMemory,
    /// What was admitted meanwhile is not charged afterwards.
    NoCharges,
    /// It is not kept which strikes were counted.
    ForgottenCalls,
}

impl Plan {
    /// Trouble of every kind.
    pub(crate) fn troubled(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let random = &mut random;
        let slowest = random.between(1, 12);
        Self {
            seed,
            nodes: random.between(1, 5) as u32,
            is_count_configured: random.percent(50),
            limits: (0..random.between(1, 3))
                .map(|place| PlannedLimit::any(place, random))
                .collect(),
            users: random.between(1, 2),
            clients: random.between(1, 3),
            pause: random.between(4, 40),
            rhythm: random.one_of(&[0, 1]) * random.between(60, 500),
            volley: random.one_of(&[1, 3, 30]),
            most_cost: random.one_of(&[1, 1, 3, 6]),
            settled: random.one_of(&[0, 0, 0, 20]),
            cancelled: random.one_of(&[0, 0, 10]),
            lasts: random.millis(500, 2500),
            network: Network {
                fastest: random.between(0, slowest),
                slowest,
                lost: random.one_of(&[0, 0, 1, 10]),
                late: random.one_of(&[0, 2, 10]),
            },
            crashes: random.below(3),
            partitions: random.below(3),
            failovers: 0,
            lag: Duration::ZERO,
            change: None,
            stalls: 0,
            longest_stall: Duration::ZERO,
            outage: "closed",
            drift_ppm: 500,
            flaw: None,
        }
    }

    /// Everyone is quiet for as long as slices are held and longer, and then wants everything.
    pub(crate) fn stormy(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let interval = Duration::from_micros(random.between(4_000, 20_000));
        let limit = PlannedLimit { interval, is_leased: true, ..PlannedLimit::any(0, &mut random) };
        let lost = random.one_of(&[0, 0, 1]);
        Self {
            nodes: random.between(2, 3) as u32,
            rhythm: random.between(60, 700),
            pause: random.one_of(&[20, 150, 500]),
            volley: random.one_of(&[5, 20, 60]),
            most_cost: 1,
            settled: 0,
            lasts: Duration::from_secs(4),
            network: Network { fastest: 1, slowest: random.between(1, 20), lost, late: 0 },
            crashes: 0,
            partitions: 0,
            ..Self::calm(seed, limit, 1)
        }
    }

    /// Redis forgets what was written last, now and then.
    pub(crate) fn forgetful(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (failovers, lag) = (random.between(1, 2), random.millis(1, 100));
        Self { failovers, lag, ..Self::troubled(seed) }
    }

    /// Redis answers nobody for a while, again and again, and nodes go on by their shares.
    /// Their messages are late then, but are neither lost nor overtake each other, as on a
    /// connection.
    pub(crate) fn stalled(seed: u64, nodes: u32) -> Self {
        let mut random = Random::new(seed);
        let journey = random.between(1, 3);
        Self {
            nodes,
            is_count_configured: true,
            network: Network { fastest: journey, slowest: journey, lost: 0, late: 0 },
            crashes: 0,
            partitions: 0,
            settled: 0,
            stalls: random.between(1, 6),
            longest_stall: random.millis(30, 400),
            outage: "local",
            // A share is refilled by the clock of the node.
            drift_ppm: 0,
            ..Self::troubled(seed)
        }
    }

    /// A quota changes while it is spent.
    pub(crate) fn changing(seed: u64) -> Self {
        let change = PlannedLimit::any(5, &mut Random::new(seed));
        let mut plan = Self { settled: 0, ..Self::troubled(seed) };
        // Another algorithm would start afresh.
        plan.change = Some(PlannedLimit { algorithm: plan.limits[0].algorithm, ..change });
        plan
    }

    /// Nothing breaks: what is denied is denied for want of tokens.
    pub(crate) fn calm(seed: u64, limit: PlannedLimit, nodes: u32) -> Self {
        Self {
            nodes,
            is_count_configured: true,
            limits: vec![limit],
            users: 1,
            clients: 4,
            rhythm: 0,
            volley: 1,
            most_cost: 1,
            settled: 0,
            cancelled: 0,
            lasts: Duration::from_secs(10),
            network: Network { fastest: 1, slowest: 2, lost: 0, late: 0 },
            crashes: 0,
            partitions: 0,
            ..Self::troubled(seed)
        }
    }

    /// The policy of every node.
    pub(crate) fn policy(&self) -> String {
        let mut policy = String::new();
        for (place, limit) in self.limits.iter().enumerate() {
            let PlannedLimit { interval, burst, is_leased, algorithm } = limit;
            let sharing = if *is_leased { "leased" } else { "strict" };
            let micros = interval.as_micros();
            let _ = writeln!(
                policy,
                "[[limit]]\nname = '{}'\nby-name = true\nper = 'user'\n\
                 quota = '1 per {micros} us burst {burst}'\n\
                 algorithm = '{algorithm}'\nsharing = '{sharing}'\noutage = '{}'",
                name(place),
                self.outage,
            );
        }
        policy
    }
}

impl PlannedLimit {
    /// No two of a plan have the same quota, so that they can be told apart by it.
    fn any(place: u64, random: &mut Random) -> Self {
        Self {
            interval: Duration::from_micros(random.between(900, 20_000)),
            burst: random.between(2, 50) * 3 + place,
            is_leased: random.percent(60),
            algorithm: random.one_of(&["token-bucket", "leaky-bucket"]),
        }
    }
}

/// The name of the limit at a place.
pub(crate) fn name(place: usize) -> &'static str {
    ["a", "b", "c"][place]
}
