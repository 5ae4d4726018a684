//! Memory does not grow with the length of a log.

use std::io::{self, Read};

use spillgate_policy::Policy;
use spillgate_replay::{Replay, Source};
use spillgate_testing::effort;

use super::line;

/// A log of so many seconds, in each of which new callers and paths come up.
struct Log {
    second: u64,
    seconds: u64,
    text: Vec<u8>,
    read: usize,
}

impl Read for Log {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.text.len() {
            self.text.clear();
            self.read = 0;
            if self.second < self.seconds {
                for place in 0..60_u64 {
                    let caller = self.second * 20 + place % 20;
                    let ip = format!("198.18.{}.{}", caller >> 8 & 255, caller & 255);
                    let request = format!("GET /p/{}-x{caller}", "y".repeat(30));
                    self.text.extend_from_slice(line(self.second, &ip, &request).as_bytes());
                }
            }
            self.second += 1;
        }
        let count = (&self.text[self.read..]).read(buffer)?;
        self.read += count;
        Ok(count)
    }
}

/// The most bytes that are allocated at one time.
fn peak(seconds: u64) -> u64 {
    let policy = "[[limit]]\nname = 'all'\nquota = '1/min'\ncapacity = 10000";
    let policy = Policy::from_toml(policy).unwrap();
    let measured = allocation_counter::measure(|| {
        let log = Log { second: 0, seconds, text: Vec::new(), read: 0 };
        let log = Source::new("generated", log, None).unwrap();
        let report = Replay::new(policy).run(vec![log], |_| ()).unwrap();
        assert_eq!(report.requests, seconds * 60);
        assert!(report.refused > seconds * 30);
    });
    measured.bytes_max
}

#[test]
fn memory_is_flat_in_the_length_of_the_log() {
    // The second is four times as long; both fill all that is bounded.
    let seconds = 1000 * u64::from(effort());
    let (short, long) = (peak(seconds), peak(4 * seconds));
    assert!(long < short + short / 10, "{short} bytes, then {long}");
}
