//! The report for a terminal.

use std::fmt::{self, Display, Formatter};

use spillgate_policy::printable;

use super::{Comparison, LimitReport, NamedCounts, Report, SHOWN};

const BAR: usize = 30;

/// How many intervals are drawn.
const ROWS: usize = 24;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.totals(f)?;
        self.skipped_lines(f)?;
        limits(f, "limits", &self.limits)?;
        self.time(f)?;
        counts(
            f,
            "callers with the most refusals, and their share since the first",
            &self.callers,
            self.callers_error,
        )?;
        counts(
            f,
            "endpoints with the most refusals, and their share since the first",
            &self.endpoints,
            self.endpoints_error,
        )?;
        self.longest_lockouts(f)?;
        if let Some(comparison) = &self.comparison {
            compared(f, comparison)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "\nnote: {}", printable(note)))
    }
}

impl Report {
    fn totals(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for log in &self.logs {
            writeln!(f, "{} ({})", printable(&log.name), log.format)?;
        }
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            writeln!(f, "{first} to {last}")?;
        }
        writeln!(f, "\n{:<16}{:>12}", "requests", self.requests)?;
        for answer in self.answers.iter().filter(|answer| answer.count > 0) {
            let share = percent(answer.count, self.requests);
            writeln!(f, "  {:<14}{:>12}  {share}", answer.name, answer.count)?;
        }
        if self.shadow_denied > 0 {
            let share = percent(self.shadow_denied, self.requests);
            writeln!(f, "  {:<14}{:>12}  {share}", "shadow-denied", self.shadow_denied)?;
        }
        Ok(())
    }

    fn skipped_lines(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for skipped in &self.skipped {
            writeln!(f, "\n{} lines skipped: {}", skipped.lines, skipped.reason)?;
            skipped.samples.iter().try_for_each(|sample| writeln!(f, "  {}", printable(sample)))?;
        }
        Ok(())
    }

    fn time(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Several intervals in a row, if there are too many.
        let group = self.intervals.len().div_ceil(ROWS).max(1);
        let Some(first) = self.intervals.first() else { return Ok(()) };
        let seconds = first.seconds * group as u64;
        writeln!(f, "\nby time ({} per row; # refused, · allowed)", duration(seconds))?;
        let rows: Vec<_> = self
            .intervals
            .chunks(group)
            .map(|rows| {
                let refused: u64 = rows.iter().map(|row| row.refused).sum();
                (&rows[0].start, refused, rows.iter().map(|row| row.allowed + row.refused).sum())
            })
            .collect();
        let most: u64 = rows.iter().map(|(_, _, all)| *all).max().unwrap_or(0);
        for (start, refused, all) in rows {
            let dark = scaled(refused, most);
            let light = scaled(all, most).saturating_sub(dark);
            let bar = format!("{}{}", "#".repeat(dark), "·".repeat(light));
            writeln!(f, "  {start} {bar:<BAR$} {all:>10} {:>8}", percent(refused, all))?;
        }
        Ok(())
    }

    fn longest_lockouts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.lockouts.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nlongest lock-outs: refused without interruption")?;
        for lockout in self.lockouts.iter().take(10) {
            let length = duration(lockout.seconds.ceil() as u64);
            let (caller, since, refused) =
                (printable(&lockout.caller), &lockout.since, lockout.refused);
            writeln!(f, "  {length:>8}  {caller:<32} from {since}, {refused} requests")?;
        }
        Ok(())
    }
}

fn limits(f: &mut Formatter<'_>, title: &str, limits: &[LimitReport]) -> fmt::Result {
    let names = limits.iter().map(|limit| limit.name.chars().count() + 2);
    let width = names.max().unwrap_or(0).max(title.chars().count());
    let columns = ["met", "denied", "shadow", "callers", "memory"];
    write!(f, "\n{title:<width$}")?;
    columns.iter().try_for_each(|column| write!(f, "{column:>12}"))?;
    writeln!(f, "  quota")?;
    for limit in limits {
        write!(f, "  {:<1$}", limit.name, width - 2)?;
        for count in [limit.met, limit.denied, limit.shadow_denied, limit.peak_callers] {
            write!(f, "{count:>12}")?;
        }
        writeln!(f, "{:>12}  {} per {}", bytes(limit.peak_bytes), limit.quota, limit.per)?;
        if limit.evictions > 0 {
            writeln!(f, "    {} callers evicted: raise its capacity", limit.evictions)?;
        }
    }
    Ok(())
}

fn counts(f: &mut Formatter<'_>, title: &str, rows: &[NamedCounts], error: u64) -> fmt::Result {
    let Some(most) = rows.iter().map(|row| row.refused).max() else { return Ok(()) };
    write!(f, "\n{title}")?;
    if error > 0 {
        write!(f, " (each up to {error} more)")?;
    }
    writeln!(f)?;
    for row in rows.iter().take(SHOWN) {
        let bar = "#".repeat(scaled(row.refused, most).max(1));
        let share = percent(row.refused, row.refused + row.allowed);
        writeln!(f, "  {:>10} {share:>8}  {bar:<BAR$} {}", row.refused, printable(&row.name))?;
    }
    Ok(())
}

fn compared(f: &mut Formatter<'_>, comparison: &Comparison) -> fmt::Result {
    writeln!(f, "\ncompared with the other policy")?;
    for (name, count) in [
        ("allowed by both", comparison.allowed_by_both),
        ("newly refused", comparison.newly_refused),
        ("newly allowed", comparison.newly_allowed),
        ("refused by both", comparison.refused_by_both),
    ] {
        writeln!(f, "  {name:<16}{count:>12}")?;
    }
    limits(f, "limits of the other policy", &comparison.limits)?;
    if !comparison.callers.is_empty() {
        writeln!(f, "\ncallers that it treats differently: newly refused, newly allowed")?;
    }
    for caller in comparison.callers.iter().take(SHOWN) {
        let (refused, allowed) = (caller.newly_refused, caller.newly_allowed);
        writeln!(f, "  {refused:>10} {allowed:>10}  {}", printable(&caller.name))?;
    }
    Ok(())
}

fn scaled(count: u64, most: u64) -> usize {
    (count as f64 / most.max(1) as f64 * BAR as f64).round() as usize
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.2} %", part as f64 / all.max(1) as f64 * 100.0)
}

pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(1_048_576)),
    }
}

pub(super) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds.div_ceil(60)),
        3600..172_800 => format!("{} h", seconds.div_ceil(3600)),
        _ => format!("{} d", seconds.div_ceil(86_400)),
    }
}
