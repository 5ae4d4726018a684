//! The load of a real processor.
#![cfg(target_os = "linux")]

use std::fs::read_to_string;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use spillgate::adaptive::{Cpu, Signal};
use spillgate::{Clock, SystemClock};

/// Keeps as many processors busy as this process may use, and returns for how many seconds its
/// threads have run, as the scheduler counts it.
fn burn(time: Duration) -> f64 {
    let until = SystemClock.now() + time;
    let spin = || {
        while SystemClock.now() < until {
            black_box((0..1_000).fold(1_u64, |product, n| product.wrapping_mul(n | 1)));
        }
        let run = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        run.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..processors()).map(|_| scope.spawn(spin)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Others may use the machine too, so this polls until the threads were given something to see.
#[test]
fn a_process_that_spins_is_as_busy_as_its_threads() {
    let mut given = Vec::new();
    for _ in 0..40 {
        let mut signals = [Cpu::process(), Cpu::machine(), Cpu::cgroup(), Cpu::detect()];
        let began = SystemClock.now();
        let first = signals.each_mut().map(|cpu| cpu.read(SystemClock.now()));
        assert_eq!(first, [None; 4], "nothing to compare with");
        let run = burn(Duration::from_millis(500));
        let elapsed = SystemClock.now().since(began).as_secs_f64();
        let loads = signals.each_mut().map(|cpu| cpu.read(SystemClock.now()));
        assert!(loads.iter().flatten().all(|load| (0.0..=1.0).contains(load)), "{loads:?}");
        let share = run / elapsed / processors() as f64;
        let [Some(process), Some(machine), ..] = loads else { panic!("{loads:?}") };
        // Ticks are 10 ms, 1 % of half a second on two processors. Other tests run in this process
        // as well.
        assert!(process > share - 0.03, "{process}, but its threads had {share}");
        let all = read_to_string("/proc/stat").unwrap();
        let all = all.lines().filter(|line| line.starts_with("cpu")).count() - 1;
        if share > 0.08 {
            assert!(all > processors() || machine > 0.8, "{machine} of the machine");
            return;
        }
        given.push(share);
    }
    panic!("the machine has no time for this test: {given:?}");
}
