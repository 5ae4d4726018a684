//! One moment as lines of text, none wider than 80 columns.

use spillgate::Decision;

use crate::acts::{ACTS, LENGTH};
use crate::moment::{Moment, Row};
use crate::style::{Ink, Style, bar, bytes, grouped, sparkline, wait};
use crate::tally::CELLS;

/// How wide the screen is taken to be.
pub(crate) const WIDTH: usize = 80;

pub(crate) fn lines(moment: &Moment, style: Style) -> Vec<String> {
    let mut lines = vec![title(moment, style), String::new(), header(style)];
    lines.push(style.paint(Ink::Dim, &format!(" {}", "─".repeat(WIDTH - 2))));
    lines.extend(moment.rows.iter().map(|row| caller(row, moment, style)));
    lines.push(String::new());
    lines.extend(table(moment, style));
    lines.push(String::new());
    lines.extend(moment.act.text.iter().map(|text| format!(" {text}")));
    lines
}

/// The quota, the acts with the current one marked, and the time.
fn title(moment: &Moment, style: Style) -> String {
    let quota = format!("one limiter, {}", moment.quota);
    let acts = ACTS.iter().map(|act| {
        let is_on = act.name == moment.act.name;
        let mark = if is_on { "●" } else { "○" };
        let ink = if is_on { Ink::Yellow } else { Ink::Dim };
        style.paint(ink, &format!("{mark} {}", act.name))
    });
    let acts = acts.collect::<Vec<_>>().join("  ");
    // Not rounded: the time shown is one that has passed.
    let tenths = moment.elapsed.min(LENGTH).as_millis() / 100;
    let time = format!("{:>2}.{} s", tenths / 10, tenths % 10);
    format!(" {}  {quota:<35}{acts}  {time}", style.paint(Ink::Bold, "SPILLGATE"))
}

fn header(style: Style) -> String {
    let text = format!(
        " {:<6}  {:<10} {:>9} {:>6}  {:<11}  {:>6}  {}",
        "caller", "asks", "admitted", "denied", "tokens left", "retry", "admitted each ½ s",
    );
    style.paint(Ink::Dim, &text)
}

fn caller(row: &Row, moment: &Moment, style: Style) -> String {
    let tally = &row.tally;
    let name = style.paint(Ink::Bold, &format!("{:<6}", row.name));
    let admitted = format!("{:>9}", grouped(tally.admitted));
    let denied = format!("{:>6}", grouped(tally.denied()));
    let denied_ink = if tally.denied() > 0 { Ink::Red } else { Ink::Dim };
    format!(
        " {name}  {:<10} {} {}  {}  {}",
        row.habit,
        style.paint(Ink::Green, &admitted),
        style.paint(denied_ink, &denied),
        standing(row.standing.as_ref(), style),
        style.paint(Ink::Cyan, &history(row, moment)),
    )
}

/// What is left, and how long a call would have to wait.
fn standing(decision: Option<&Decision>, style: Style) -> String {
    let Some(decision) = decision else {
        return style.paint(Ink::Dim, &format!("{:<11}  {:>6}", "–", "–"));
    };
    let (left, limit) = (decision.remaining(), decision.limit());
    let ink = match left {
        0 => Ink::Red,
        _ if left < limit / 2 => Ink::Yellow,
        _ => Ink::Green,
    };
    let retry = match decision.retry_after() {
        Some(time) if decision.is_denied() => style.paint(Ink::Red, &format!("{:>6}", wait(time))),
        _ => style.paint(Ink::Dim, &format!("{:>6}", "–")),
    };
    format!("{} {left:>2}  {retry}", style.paint(ink, &bar(left, limit, 8)))
}

/// Admitted calls over time. The callers share one scale; the flood is beyond it.
fn history(row: &Row, moment: &Moment) -> String {
    let peak_of = |row: &Row| row.tally.history.iter().max().copied().unwrap_or(0);
    let peak = match row.standing {
        Some(_) => moment.callers().map(peak_of).max().unwrap_or(0),
        None => peak_of(row),
    };
    let past = moment.elapsed.as_millis() * CELLS as u128 / LENGTH.as_millis();
    let cells = usize::try_from(past).unwrap_or(CELLS).min(CELLS - 1) + 1;
    sparkline(row.tally.history.get(..cells).unwrap_or_default(), peak)
}

/// What the table holds, and what it costs.
fn table(moment: &Moment, style: Style) -> [String; 4] {
    let table = &moment.table;
    let line = |label: &str, value: &str, remark: &str| {
        let label = style.paint(Ink::Bold, &format!("{label:<7}"));
        format!(" {label} {value} {}", style.paint(Ink::Dim, remark))
    };
    let process =
        moment.resident.map(|resident| format!("; the process takes {}", bytes(resident)));
    let size = format!("for {} callers, fixed", grouped(table.capacity));
    let live = style.paint(Ink::Cyan, &bar(table.live, table.slots, 32));
    let slots = format!("of {} slots", grouped(table.slots));
    let nanos = moment.fresh_nanos.map_or("–".to_owned(), |nanos| nanos.to_string());
    [
        line("table", &bytes(table.bytes()), &(size + &process.unwrap_or_default())),
        line("live", &format!("{live} {}", grouped(table.live)), &slots),
        line(
            "evicted",
            &grouped(table.evictions),
            "callers, each the one that had spent the least",
        ),
        line("speed", &nanos, "ns a decision for a fresh key, measured in this run"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Story;

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let mut moment = Story::on_manual_clock().unwrap().moment(Some(999_900_000));
        moment.fresh_nanos = Some(123_456);
        moment.elapsed = LENGTH;
        moment.rows[3].tally.asked = 9_999_999;
        moment.rows[3].tally.admitted = 9_999_999;
        moment.table.evictions = 9_999_999;
        moment.table.live = moment.table.slots;
        for act in &ACTS {
            moment.act = act;
            for line in lines(&moment, Style { colours: false }) {
                assert!(line.chars().count() <= WIDTH, "{line:?}");
            }
        }
    }

    #[test]
    fn colours_change_no_letter() {
        let moment = Story::on_manual_clock().unwrap().moment(None);
        let plain = lines(&moment, Style { colours: false }).join("\n");
        let coloured = lines(&moment, Style { colours: true }).join("\n");
        let mut letters = String::new();
        for (index, part) in coloured.split("\x1b[").enumerate() {
            letters.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
        }
        assert_eq!(letters, plain);
    }
}
