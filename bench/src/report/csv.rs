use std::fmt::Write as _;

use crate::results::Measurement;

/// Every round of every measurement.
pub fn render(measurements: &[Measurement]) -> String {
    let mut csv = String::from("case,peer,round,value,unit\n");
    for measurement in measurements {
        let Measurement { case, peer, .. } = measurement;
        for (round, value) in measurement.rounds.iter().enumerate() {
            let unit = case.unit();
            let _ = writeln!(csv, "\"{case}\",{peer},{round},{value:.4},\"{unit}\"");
        }
    }
    csv
}
