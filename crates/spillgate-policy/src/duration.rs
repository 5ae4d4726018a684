//! Spans of time as text: `90s`, `10min`, `1h`, with the units of quotas.

use std::time::Duration;

use spillgate::Quota;

/// A duration from its text: a whole number and a unit of a quota, such as `500ms`, `90s`, `10m`,
/// `1h` or `1d`.
///
/// ```
/// use std::time::Duration;
/// use spillgate_policy::parse_duration;
///
/// assert_eq!(parse_duration("10m"), Ok(Duration::from_secs(600)));
/// assert!(parse_duration("ten minutes").is_err());
/// ```
///
/// # Errors
///
/// If the text is no duration above zero: says what to write.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    // The period of a quota's text, and nothing after it.
    let is_period = text.starts_with(|first: char| first.is_ascii_digit());
    let quota = format!("1/{text} burst 1").parse::<Quota>().ok().filter(|_| is_period);
    let period = quota.and_then(|quota| quota.period());
    period.ok_or_else(|| "write a duration, such as \"30s\", \"500ms\" or \"1h\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        for (text, seconds) in [
            ("90s", 90),
            ("10m", 600),
            ("10min", 600),
            ("1h", 3600),
            ("1d", 86_400),
            ("2 days", 172_800),
            ("1w", 604_800),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "1", "h", "0s", "-1s", "1.5h", "1h30m", "1h burst 2", "1y", "s1"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
