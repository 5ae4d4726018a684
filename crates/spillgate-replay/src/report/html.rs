//! The report as one HTML file, which loads nothing.

use std::fmt::{self, Write};

use spillgate_policy::printable;

use super::terminal::{bytes, duration};
use super::{Interval, LimitReport, NamedCounts, Report, SHOWN};

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Spillgate replay</title>
<style>
:root { color-scheme: light dark; --allowed: #7aa7d9; --refused: #c8452f; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; }
div { overflow-x: auto; }
svg { width: 100%; height: auto; }
.allowed { fill: var(--allowed); } .refused { fill: var(--refused); }
text { fill: currentColor; font-size: 11px; }
code { overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>Spillgate replay</h1>
"#;

impl Report {
    /// The report as one HTML file with plots. Nothing from the log is markup.
    ///
    /// # Errors
    ///
    /// Never: writing to a text does not fail.
    pub fn to_html(&self) -> Result<String, fmt::Error> {
        let mut html = HEAD.to_owned();
        self.head(&mut html)?;
        limit_table(&mut html, "Limits", &self.limits)?;
        plot(&mut html, &self.intervals)?;
        count_table(
            &mut html,
            "Callers with the most refusals",
            &self.callers,
            self.callers_error,
        )?;
        let title = "Endpoints with the most refusals";
        count_table(&mut html, title, &self.endpoints, self.endpoints_error)?;
        self.lockout_table(&mut html)?;
        self.compared(&mut html)?;
        self.skipped_list(&mut html)?;
        html.push_str("</body>\n</html>\n");
        Ok(html)
    }

    fn head(&self, html: &mut String) -> fmt::Result {
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            writeln!(html, "<p>{first} to {last}</p>")?;
        }
        html.push_str("<ul>\n");
        for log in &self.logs {
            writeln!(html, "<li><code>{}</code> ({})</li>", escape(&log.name), log.format)?;
        }
        html.push_str(
            "</ul>\n<div><table>\n<tr><th>answer</th><th>requests</th><th>share</th></tr>\n",
        );
        let mut row = |name: &str, count: u64| {
            let share = count as f64 / self.requests.max(1) as f64 * 100.0;
            writeln!(html, "<tr><td>{name}</td><td>{count}</td><td>{share:.2} %</td></tr>")
        };
        row("all", self.requests)?;
        for answer in self.answers.iter().filter(|answer| answer.count > 0) {
            row(answer.name, answer.count)?;
        }
        row("shadow-denied", self.shadow_denied)?;
        html.push_str("</table></div>\n");
        self.notes.iter().try_for_each(|note| writeln!(html, "<p>Note: {}</p>", escape(note)))
    }

    fn lockout_table(&self, html: &mut String) -> fmt::Result {
        if self.lockouts.is_empty() {
            return Ok(());
        }
        html.push_str("<h2>Longest lock-outs</h2>\n<div><table>\n<tr><th>caller</th><th>from</th><th>for</th><th>requests</th></tr>\n");
        for lockout in &self.lockouts {
            let (caller, length) =
                (escape(&lockout.caller), duration(lockout.seconds.ceil() as u64));
            let (since, refused) = (&lockout.since, lockout.refused);
            writeln!(
                html,
                "<tr><td>{caller}</td><td>{since}</td><td>{length}</td><td>{refused}</td></tr>"
            )?;
        }
        html.push_str("</table></div>\n");
        Ok(())
    }

    fn compared(&self, html: &mut String) -> fmt::Result {
        let Some(comparison) = &self.comparison else { return Ok(()) };
        writeln!(
            html,
            "<h2>Compared with the other policy</h2>\n<p>{} newly refused, {} newly allowed, {} \
             allowed by both, {} refused by both</p>",
            comparison.newly_refused,
            comparison.newly_allowed,
            comparison.allowed_by_both,
            comparison.refused_by_both
        )?;
        limit_table(html, "Limits of the other policy", &comparison.limits)?;
        html.push_str("<h2>Callers that it treats differently</h2>\n<div><table>\n<tr><th>caller</th><th>newly refused</th><th>newly allowed</th></tr>\n");
        for caller in comparison.callers.iter().take(SHOWN) {
            let (name, refused) = (escape(&caller.name), caller.newly_refused);
            let allowed = caller.newly_allowed;
            writeln!(html, "<tr><td>{name}</td><td>{refused}</td><td>{allowed}</td></tr>")?;
        }
        html.push_str("</table></div>\n");
        Ok(())
    }

    fn skipped_list(&self, html: &mut String) -> fmt::Result {
        if self.skipped.is_empty() {
            return Ok(());
        }
        html.push_str("<h2>Skipped lines</h2>\n<ul>\n");
        for skipped in &self.skipped {
            write!(html, "<li>{} {}", skipped.lines, skipped.reason)?;
            for sample in &skipped.samples {
                write!(html, "<br><code>{}</code>", escape(sample))?;
            }
            html.push_str("</li>\n");
        }
        html.push_str("</ul>\n");
        Ok(())
    }
}

fn limit_table(html: &mut String, title: &str, limits: &[LimitReport]) -> fmt::Result {
    writeln!(
        html,
        "<h2>{title}</h2>\n<div><table>\n<tr><th>limit</th><th>quota</th><th>met</th><th>denied</th>\
         <th>shadow-denied</th><th>callers at peak</th><th>memory</th><th>evicted</th></tr>"
    )?;
    for limit in limits {
        let (name, quota, per) = (escape(&limit.name), escape(&limit.quota), escape(&limit.per));
        write!(html, "<tr><td>{name}</td><td>{quota} per {per}</td><td>{}</td>", limit.met)?;
        write!(html, "<td>{}</td><td>{}</td>", limit.denied, limit.shadow_denied)?;
        let memory = bytes(limit.peak_bytes);
        let (callers, evictions) = (limit.peak_callers, limit.evictions);
        writeln!(html, "<td>{callers}</td><td>{memory}</td><td>{evictions}</td></tr>")?;
    }
    html.push_str("</table></div>\n");
    Ok(())
}

fn count_table(html: &mut String, title: &str, rows: &[NamedCounts], error: u64) -> fmt::Result {
    let Some(most) = rows.iter().map(|row| row.refused).max() else { return Ok(()) };
    writeln!(html, "<h2>{title}</h2>")?;
    if error > 0 {
        writeln!(html, "<p>Each may have up to {error} more.</p>")?;
    }
    html.push_str(
        "<div><table>\n<tr><th>name</th><th>refused</th><th>allowed since the first</th><th></th></tr>\n",
    );
    for row in rows.iter().take(SHOWN) {
        let (name, refused, allowed) = (escape(&row.name), row.refused, row.allowed);
        let width = refused as f64 / most.max(1) as f64 * 100.0;
        writeln!(
            html,
            "<tr><td>{name}</td><td>{refused}</td><td>{allowed}</td><td><svg viewBox=\"0 0 100 6\" \
             role=\"img\" aria-label=\"{refused} refused\" style=\"width:8rem\"><rect class=\"refused\" \
             width=\"{width:.1}\" height=\"6\"/></svg></td></tr>"
        )?;
    }
    html.push_str("</table></div>\n");
    Ok(())
}

/// Stacked columns: refused below, allowed above.
fn plot(html: &mut String, intervals: &[Interval]) -> fmt::Result {
    const WIDTH: f64 = 900.0;
    const HEIGHT: f64 = 180.0;
    let Some((first, last)) = intervals.first().zip(intervals.last()) else { return Ok(()) };
    let most = intervals.iter().map(|it| it.allowed + it.refused).max().unwrap_or(1).max(1);
    let step = WIDTH / intervals.len() as f64;
    let scale = HEIGHT / most as f64;
    writeln!(
        html,
        "<h2>Requests by time ({} per column)</h2>\n<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" \
         aria-label=\"allowed and refused requests by time\">",
        duration(first.seconds),
        HEIGHT + 32.0
    )?;
    for (place, it) in intervals.iter().enumerate() {
        let (x, width) = (place as f64 * step, (step * 0.9).max(0.5));
        let (refused, allowed) = (it.refused as f64 * scale, it.allowed as f64 * scale);
        let title = format!("{}: {} allowed, {} refused", it.start, it.allowed, it.refused);
        writeln!(
            html,
            "<g><title>{title}</title><rect class=\"allowed\" x=\"{x:.1}\" y=\"{:.1}\" \
             width=\"{width:.1}\" height=\"{allowed:.1}\"/><rect class=\"refused\" x=\"{x:.1}\" \
             y=\"{:.1}\" width=\"{width:.1}\" height=\"{refused:.1}\"/></g>",
            HEIGHT + 14.0 - refused - allowed,
            HEIGHT + 14.0 - refused,
        )?;
    }
    let base = HEIGHT + 28.0;
    writeln!(
        html,
        "<text x=\"0\" y=\"10\">{most} requests</text><text x=\"0\" y=\"{base}\">{}</text>\
         <text x=\"{WIDTH}\" y=\"{base}\" text-anchor=\"end\">{}</text>\n</svg>\n\
         <p>Red, below: refused. Blue, above: allowed.</p>",
        first.start, last.start
    )
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for it in printable(text).chars() {
        match it {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            it => escaped.push(it),
        }
    }
    escaped
}
