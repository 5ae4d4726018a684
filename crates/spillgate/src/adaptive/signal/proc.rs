//! Processor time, as Linux writes it under `/proc`.

/// Ticks of processor time that a process has used, from `/proc/self/stat`.
///
/// The name of the program comes first, in parentheses, and may have any character in it.
pub(super) fn process_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    // The state is the first field after it; user and system time are the 12th and 13th.
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let (user, system) = (number(fields.next()?)?, number(fields.next()?)?);
    // A field after them shows that the last digit is there.
    fields.next()?;
    user.checked_add(system)
}

/// Busy and all ticks of all processors, from the first line of `/proc/stat`.
///
/// Time that a hypervisor gave to others (steal) counts as busy, since nobody here could use it.
pub(super) fn machine_ticks(stat: &str) -> Option<(u64, u64)> {
    let (line, _) = stat.split_once('\n')?;
    let mut fields = line.split_ascii_whitespace();
    if fields.next() != Some("cpu") {
        return None;
    }
    // user, nice, system, idle, iowait, irq, softirq, steal. Guests are part of user and nice.
    // Old kernels have the first four.
    let ticks: Vec<u64> = fields.take(8).map(number).collect::<Option<_>>()?;
    let [user, nice, system, idle, rest @ ..] = &ticks[..] else { return None };
    let (waiting, interrupts) = rest.split_first().unwrap_or((&0, &[]));
    let mut busy = [user, nice, system].into_iter().chain(interrupts);
    let busy = busy.try_fold(0_u64, |sum, ticks| sum.checked_add(*ticks))?;
    let all = busy.checked_add(*idle)?.checked_add(*waiting)?;
    Some((busy, all))
}

/// How many ticks a second has, from `/proc/self/auxv`: pairs of native words.
pub(super) fn ticks_per_second(auxv: &[u8]) -> Option<u64> {
    const AT_CLKTCK: usize = 17;
    const WORD: usize = size_of::<usize>();
    let word = |bytes: &[u8]| bytes.try_into().ok().map(usize::from_ne_bytes);
    let mut pairs = auxv.chunks_exact(2 * WORD).map(|pair| pair.split_at(WORD));
    let (_, ticks) = pairs.find(|(key, _)| word(key) == Some(AT_CLKTCK))?;
    word(ticks).filter(|ticks| (1..=1_000_000).contains(ticks)).map(|ticks| ticks as u64)
}

/// A number of digits only: no sign, no spaces.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "6129 (cat) R 6105 6105 3319 0 -1 4194304 100 0 0 0 17 4 0 0 20 0 1 0 \
                        6080755 3133440 394 18446744073709551615 93978661326848 0 0 0 17 1 0 0\n";

    #[test]
    fn a_process_has_user_and_system_time() {
        assert_eq!(process_ticks(STAT), Some(21));
        for name in ["a b", ") R 1 (", "((", "\u{fffd}\n", ""] {
            assert_eq!(process_ticks(&STAT.replace("cat", name)), Some(21), "{name:?}");
        }
    }

    #[test]
    fn what_is_no_stat_of_a_process_has_no_time() {
        let huge = STAT.replace(" 17 4 ", " 18446744073709551615 1 ");
        let negative = STAT.replace(" 17 4 ", " -17 4 ");
        for text in ["", ")", "1 (x) R", "1 x R 1 2 3 4 5 6 7 8 9 10 11 12 13", &huge, &negative] {
            assert_eq!(process_ticks(text), None, "{text:?}");
        }
        // Cut anywhere, it has the right time or none.
        for end in 0..STAT.len() {
            let ticks = process_ticks(&STAT[..end]);
            assert!(ticks.is_none_or(|ticks| ticks == 21), "{ticks:?} of {:?}", &STAT[..end]);
        }
    }

    const MACHINE: &str = "cpu  7084046 358916 921437 3539041 169747 0 36424 13490 5 6\n\
                           cpu0 3450427 175054 435743 1925826 50522 0 16307 6623 0 0\n";

    #[test]
    fn a_machine_is_busy_or_idle() {
        let busy = 7_084_046 + 358_916 + 921_437 + 36_424 + 13_490;
        assert_eq!(machine_ticks(MACHINE), Some((busy, busy + 3_539_041 + 169_747)));
        assert_eq!(machine_ticks("cpu 1 2 3 4\n"), Some((6, 10)), "an old kernel");
        assert_eq!(machine_ticks("cpu 1 2 3 4 5\n"), Some((6, 15)));
        assert_eq!(machine_ticks("cpu 0 0 0 0 0 0 0 0 0 0 99 99\n"), Some((0, 0)), "a new one");
    }

    #[test]
    fn what_is_no_stat_of_a_machine_has_no_time() {
        let huge = format!("cpu {max} 1 1 1\n", max = u64::MAX);
        for text in ["", "\n", "cpu\n", "cpu 1 2 3\n", "cpu0 1 2 3 4\n", "cpu 1 2 x 4\n", &huge] {
            assert_eq!(machine_ticks(text), None, "{text:?}");
        }
        assert_eq!(machine_ticks("cpu 1 2 3 99999999999999999999\n"), None);
        let line = MACHINE.find('\n').unwrap();
        assert!((0..=line).all(|end| machine_ticks(&MACHINE[..end]).is_none()), "a cut line");
    }

    #[test]
    fn the_kernel_says_how_long_a_tick_is() {
        let pair = |key: usize, value: usize| [key.to_ne_bytes(), value.to_ne_bytes()].concat();
        let auxv = [pair(16, 5), pair(17, 100), pair(0, 0)].concat();
        assert_eq!(ticks_per_second(&auxv), Some(100));
        for auxv in [&[][..], &auxv[..20], &pair(17, 0), &pair(17, usize::MAX), &pair(3, 17)] {
            assert_eq!(ticks_per_second(auxv), None, "{auxv:?}");
        }
    }

    #[test]
    fn a_number_has_digits_only() {
        assert_eq!(number("0018"), Some(18));
        for text in ["", "+1", "-1", " 1", "1 ", "1.0", "1e3", "max", "18446744073709551616"] {
            assert_eq!(number(text), None, "{text:?}");
        }
    }
}
