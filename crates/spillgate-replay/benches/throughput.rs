//! Lines per second of a replay, and instructions per line:
//!
//! ```text
//! cargo build --profile dist -p spillgate-replay --example throughput
//! taskset -c 0 target/dist/examples/throughput            # 5,000,000 lines
//! valgrind --tool=callgrind target/dist/examples/throughput 100000
//! ```

use std::io::{self, Read};

use spillgate::{Clock, SystemClock};
use spillgate_policy::Policy;
use spillgate_replay::{Replay, Source};

const POLICY: &str = "
[[limit]]
name = 'all'
quota = '5/s burst 40'

[[limit]]
name = 'login'
match = { path = '/login', method = 'POST' }
quota = '5/min'
";

/// A log in the combined format: 100,000 callers, some of them far more often than others, 2,000
/// requests per second.
struct Log {
    left: u64,
    line: u64,
    buffer: Vec<u8>,
    read: usize,
}

impl Log {
    fn fill(&mut self) {
        const PATHS: [&str; 6] = [
            "GET /",
            "GET /items/4711?page=3",
            "POST /login",
            "GET /static/site.css",
            "GET /search?q=a",
            "PUT /cart/9",
        ];
        self.buffer.clear();
        self.read = 0;
        while self.buffer.len() < 1 << 16 && self.left > 0 {
            self.left -= 1;
            self.line += 1;
            let random = self.line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            // The product of two is smaller more often.
            let caller = (random % 317) * ((random >> 12) % 317);
            let (third, last, second) = (caller >> 8 & 255, caller & 255, self.line / 2000);
            let (hour, minute, second) = (second / 3600 % 24, second / 60 % 60, second % 60);
            let path = PATHS[(random >> 30) as usize % PATHS.len()];
            let line = format!(
                "198.{}.{third}.{last} - - [17/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000] \
                 \"{path} HTTP/1.1\" 200 612 \"https://www.example.com/\" \"Mozilla/5.0 (X11; Linux \
                 x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\"\n",
                18 + (caller >> 16)
            );
            self.buffer.extend_from_slice(line.as_bytes());
        }
    }
}

impl Read for Log {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.buffer.len() {
            self.fill();
        }
        let count = (&self.buffer[self.read..]).read(buffer)?;
        self.read += count;
        Ok(count)
    }
}

/// The time that this process has spent on a processor, which others cannot take from it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    nanos.unwrap_or(f64::NAN) / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1);
    let lines = argument.map_or(Ok(5_000_000), |text| text.parse())?;
    let mut text = Vec::new();
    Log { left: lines, line: 0, buffer: Vec::new(), read: 0 }.read_to_end(&mut text)?;
    let bytes = text.len();
    let clock = SystemClock;
    let log = Source::new("generated", io::Cursor::new(text), None)?;
    let (begin, cpu) = (clock.now(), cpu_seconds());
    let report = Replay::new(Policy::from_toml(POLICY)?).run(vec![log], |_| ())?;
    let seconds = clock.now().since(begin).as_secs_f64();
    let cpu = cpu_seconds() - cpu;
    println!(
        "{lines} lines ({bytes} bytes): {seconds:.3} s, {:.0} lines/s; on the processor {cpu:.3} s, \
         {:.0} lines/s; {} allowed, {} refused",
        lines as f64 / seconds,
        lines as f64 / cpu,
        report.allowed,
        report.refused
    );
    Ok(())
}
