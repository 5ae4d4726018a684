//! The report as CSV: one table for spreadsheets.

use spillgate_policy::printable;

use super::Report;

impl Report {
    /// The report as CSV: a row for each limit, caller, endpoint and hour.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut csv = "kind,name,allowed,refused,shadow-denied\n".to_owned();
        let mut row = |kind: &str, name: &str, allowed: u64, refused: u64, shadow: u64| {
            csv.push_str(&format!("{kind},{},{allowed},{refused},{shadow}\n", cell(name)));
        };
        row("total", "", self.allowed, self.refused, self.shadow_denied);
        for limit in &self.limits {
            let allowed = limit.met - limit.denied;
            row("limit", &limit.name, allowed, limit.denied, limit.shadow_denied);
        }
        for caller in &self.callers {
            row("caller", &caller.name, caller.allowed, caller.refused, 0);
        }
        for endpoint in &self.endpoints {
            row("endpoint", &endpoint.name, endpoint.allowed, endpoint.refused, 0);
        }
        for hour in &self.hours {
            row("hour", &hour.start, hour.allowed, hour.refused, 0);
        }
        for caller in self.comparison.iter().flat_map(|comparison| &comparison.callers) {
            row("compared", &caller.name, caller.newly_allowed, caller.newly_refused, 0);
        }
        csv
    }
}

/// A cell in quotes. A spreadsheet takes what begins with certain characters for a formula, so an
/// apostrophe comes first then.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = printable(text).replace('"', "\"\"");
    format!("\"{}{text}\"", if is_formula { "'" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        assert_eq!(cell("GET /a,\"b\""), "\"GET /a,\"\"b\"\"\"");
        assert_eq!(cell("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(cell("GET /\u{1b}[2J\u{202e}"), "\"GET /\u{fffd}[2J\u{fffd}\"");
    }
}
