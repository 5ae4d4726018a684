//! Bars made of characters.

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One line per row, from the top: a bar per value, the highest as high as all rows. What is not
/// zero is seen.
pub(super) fn bars(values: &[Option<f64>], rows: usize) -> Vec<String> {
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let height = |value: f64| match value / most * (8 * rows) as f64 {
        _ if value <= 0.0 => 0,
        eighths => (eighths.round() as usize).clamp(1, 8 * rows),
    };
    let heights: Vec<_> = values.iter().map(|value| value.map_or(0, height)).collect();
    let row = |below: usize| {
        heights.iter().map(|height| EIGHTHS[height.saturating_sub(8 * below).min(8)]).collect()
    };
    (0..rows).rev().map(row).collect()
}

/// A share of a whole as a bar of so many characters.
pub(super) fn share(share: f64, width: usize) -> String {
    let full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    "█".repeat(full) + &"·".repeat(width - full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_is_full_and_a_small_one_is_seen() {
        let values = [Some(0.0), Some(0.001), Some(50.0), None, Some(100.0)];
        assert_eq!(bars(&values, 1), [" ▁▄ █"]);
        assert_eq!(bars(&values, 2), ["    █", " ▁█ █"]);
        assert_eq!(bars(&[Some(0.0), None], 1), ["  "]);
        assert_eq!(bars(&[], 1), [""]);
        assert_eq!((share(0.5, 4), share(f64::NAN, 2)), ("██··".to_owned(), "··".to_owned()));
    }
}
