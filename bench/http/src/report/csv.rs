use std::fmt::Write as _;

use crate::results::Series;

/// Every round of every measurement.
pub fn render(series: &[Series]) -> String {
    let mut csv = String::from("case,subject,round,value,unit\n");
    for Series { case, subject, unit, rounds } in series {
        for (round, value) in rounds.iter().enumerate() {
            let _ = writeln!(csv, "\"{case}\",\"{subject}\",{round},{value:.4},\"{unit}\"");
        }
    }
    csv
}
