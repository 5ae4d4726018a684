//! Does it limit at all? Asked before anything is timed, of every limiter, by
//! its own clock. A bound allows for the time that the probe itself took.

use std::fmt;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::keys::{Caller, KeySet};
use crate::peer::Contender;
use crate::report::{Table, progress};
use crate::roster::Candidate;
use crate::settings::Settings;
use crate::terms::Terms;

/// A question and what a limiter has to answer.
struct Probe {
    name: &'static str,
    question: &'static str,
    /// The answer of each candidate.
    ask: fn(&[Candidate]) -> Vec<Answer>,
}

/// How much was admitted, and how much may and must have been.
struct Answer {
    admitted: u64,
    least: u64,
    most: u64,
}

const PROBES: [Probe; 6] = [
    Probe {
        name: "20 at once",
        question: "of 10/s burst 20, exactly 20 pass at once",
        ask: |candidates| each(candidates, |it| at_once(it, Terms::per_second(10, 20))),
    },
    Probe {
        name: "1 at once",
        question: "of 10/s burst 1, exactly 1 passes at once",
        ask: |candidates| each(candidates, |it| at_once(it, Terms::per_second(10, 1))),
    },
    Probe {
        name: "after idling",
        question: "of 100/s burst 20, exactly 20 pass at once after idling for 1.1 to 5 \
                   times as long as it takes to refill them",
        ask: after_idling,
    },
    Probe {
        name: "1M/s",
        question: "of 1,000,000/s, a caller that never pauses gets just that",
        ask: |candidates| {
            let terms = Terms::per_second(1_000_000, 100_000);
            let ask = |it: &Candidate| asked_all_the_time(&[*it], terms, Duration::ZERO);
            candidates.iter().flat_map(ask).collect()
        },
    },
    Probe {
        name: "1/s",
        question: "of 1/s, a caller that asks every other microsecond gets just that",
        ask: |candidates| {
            let terms = Terms::per_second(1, 2);
            asked_all_the_time(candidates, terms, Duration::from_nanos(1_900))
        },
    },
    Probe {
        name: "2 threads",
        question: "of burst 5, two threads that ask for the same callers at the same time \
                   get exactly 5 per caller",
        ask: |candidates| each(candidates, raced),
    },
];

pub const NAME: &str = "probe";

/// One row a limiter, one column a question; and those who failed any.
pub fn measure(settings: &Settings) -> (Table, Vec<&'static str>) {
    let limiters = settings.limiters();
    let mut table = Table::new("Do they limit?", "limiter");
    let stub = |limiter: &Candidate| vec![limiter.name.to_owned()];
    table.rows = limiters.iter().map(stub).collect();
    let mut unsound = Vec::new();
    for probe in PROBES {
        let Probe { name, question, .. } = probe;
        progress(format_args!("{NAME}: {question}"));
        table.header.push(name.to_owned());
        table.notes.push(format!("{name}: {question}"));
        for (index, answer) in (probe.ask)(&limiters).iter().enumerate() {
            table.rows[index].push(answer.to_string());
            if !answer.is_right() && !unsound.contains(&limiters[index].name) {
                unsound.push(limiters[index].name);
            }
        }
    }
    (table, unsound)
}

impl Answer {
    fn is_right(&self) -> bool {
        (self.least..=self.most).contains(&self.admitted)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { admitted, least, most } = self;
        if self.is_right() {
            write!(f, "yes")
        } else if admitted > most {
            write!(f, "NO: {admitted}, at most {most}")
        } else {
            write!(f, "NO: {admitted}, at least {least}")
        }
    }
}

fn each(candidates: &[Candidate], ask: impl Fn(&Candidate) -> Answer) -> Vec<Answer> {
    candidates.iter().map(ask).collect()
}

/// Far more checks than may pass, without a pause.
fn at_once(candidate: &Candidate, terms: Terms) -> Answer {
    let limiter = candidate.build(terms, 1_000);
    let begin = Instant::now();
    let admitted = spend(limiter.as_ref(), 0, terms);
    Answer { admitted, least: terms.burst.into(), most: terms.most_in(begin.elapsed()) }
}

fn spend(limiter: &dyn Contender, caller: Caller, terms: Terms) -> u64 {
    limiter.check_each(&KeySet::repeat(caller, 10 * terms.burst as usize))
}

/// A caller that had spent everything and one that had spent a little come back,
/// after as long as it takes to refill the burst and after several times that.
/// The answer is the worst of all.
fn after_idling(candidates: &[Candidate]) -> Vec<Answer> {
    const TENTHS: [u32; 6] = [11, 14, 17, 19, 30, 50];
    let terms = Terms::per_second(100, 20);
    let callers = [0, 1];
    // All limiters idle at the same time, so that it need be waited for only once.
    let limiters: Vec<_> =
        candidates.iter().map(|candidate| candidate.build(terms, 1_000)).collect();
    let mut worst: Vec<_> = limiters.iter().map(|_| Answer::full(terms)).collect();
    for tenths in TENTHS {
        for limiter in &limiters {
            spend(limiter.as_ref(), callers[0], terms);
            limiter.check_each(&KeySet::repeat(callers[1], 1));
        }
        std::thread::sleep(terms.interval() * terms.burst * tenths / 10);
        for (limiter, worst) in limiters.iter().zip(&mut worst) {
            for caller in callers {
                let begin = Instant::now();
                let admitted = spend(limiter.as_ref(), caller, terms);
                worst.update(admitted, terms.most_in(begin.elapsed()));
            }
        }
        // What the slowest refill may still owe does not count against the next.
        std::thread::sleep(terms.interval() * terms.burst);
    }
    worst
}

impl Answer {
    fn full(terms: Terms) -> Self {
        let burst = u64::from(terms.burst);
        Self { admitted: burst, least: burst, most: burst }
    }

    /// Keeps whichever is further from what it should be.
    fn update(&mut self, admitted: u64, most: u64) {
        let off = |admitted: u64, most: u64| {
            admitted.saturating_sub(most).max(self.least.saturating_sub(admitted))
        };
        if off(admitted, most) > off(self.admitted, self.most) {
            self.admitted = admitted;
            self.most = most;
        }
    }
}

/// One caller that asks again after each `gap`, all limiters in turn: it must get
/// its rate, and no more.
fn asked_all_the_time(candidates: &[Candidate], terms: Terms, gap: Duration) -> Vec<Answer> {
    /// What a caller may lose to rounding and to having been interrupted.
    const SHARE: f64 = 0.97;
    let time = (terms.interval() * 6).max(Duration::from_millis(400));
    let limiters: Vec<_> = candidates.iter().map(|it| it.build(terms, 1_000)).collect();
    let mut admitted = vec![0; limiters.len()];
    let keys = KeySet::repeat(0, 1);
    let begin = Instant::now();
    let mut now = begin;
    while now - begin < time {
        for (limiter, admitted) in limiters.iter().zip(&mut admitted) {
            *admitted += limiter.check_each(&keys);
        }
        let last = now;
        while now - last < gap || now == last {
            now = Instant::now();
        }
    }
    let elapsed = begin.elapsed();
    let least = SHARE * (f64::from(terms.burst) + terms.refilled_in(elapsed)) - 1.0;
    let most = terms.most_in(elapsed);
    let answer = |admitted| Answer { admitted, least: least as u64, most };
    admitted.into_iter().map(answer).collect()
}

/// Two threads ask for the same callers at the same time, each for as much as
/// there is in all.
fn raced(candidate: &Candidate) -> Answer {
    const CALLERS: u32 = 20_000;
    let terms = Terms { burst: 5, ..Terms::STINGY };
    let limiter = candidate.build(terms, CALLERS as usize);
    let asks = (0..CALLERS).flat_map(|caller| std::iter::repeat_n(caller, terms.burst as usize));
    let keys = KeySet::new(asks);
    let due = u64::from(CALLERS * terms.burst);
    Answer { admitted: check_each_twice_at_once(limiter.as_ref(), &keys), least: due, most: due }
}

fn check_each_twice_at_once(limiter: &dyn Contender, keys: &KeySet) -> u64 {
    let barrier = Barrier::new(2);
    let check_each = || {
        barrier.wait();
        limiter.check_each(keys)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(check_each);
        check_each() + other.join().expect("checks that end")
    })
}
