//! What was probably meant.

/// Longer words are not looked at: nobody meant a short one.
const LONGEST: usize = 64;

/// How many words are compared, and how many are listed: policies can have thousands of limits.
const COMPARED: usize = 100;
const TOLD: usize = 10;

/// Of the words there are, the one that was probably meant.
pub(crate) fn closest<'w>(
    written: &str,
    words: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    if written.len() > LONGEST {
        return None;
    }
    let written = written.to_lowercase();
    let (distance, word) = words
        .into_iter()
        .map(|word| (strsim::osa_distance(&written, word), word))
        .min_by_key(|(distance, _)| *distance)?;
    // One slip in three letters.
    (distance * 3 <= written.len().max(word.len())).then_some(word)
}

/// What to say after an unknown word: the one that was probably meant, or what there is.
/// Of many words, only the first are looked at.
pub(crate) fn hint<'w>(written: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.into_iter().take(COMPARED).collect();
    match (closest(written, words.iter().copied()), words.get(..TOLD)) {
        (Some(word), _) => format!("; did you mean {word:?}?"),
        (None, _) if words.is_empty() => "; there are none".to_owned(),
        (None, Some(first)) if words.len() > TOLD => {
            format!("; use one of {} and others", first.join(", "))
        }
        (None, _) => format!("; use one of {}", words.join(", ")),
    }
}

/// A word in quotation marks, cut if it is long.
pub(crate) fn quoted(word: &str) -> String {
    format!("{:?}", cut(word))
}

/// A word, cut if it is long.
pub(crate) fn cut(word: &str) -> String {
    match word.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", word.get(..end).unwrap_or_default()),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let words = ["quota", "per", "match", "trusted-proxies"];
        for (written, expected) in [
            ("qouta", Some("quota")),
            ("Quota", Some("quota")),
            ("quotas", Some("quota")),
            ("pre", Some("per")),
            ("trusted_proxies", Some("trusted-proxies")),
            ("trustedproxy", Some("trusted-proxies")),
            ("rate", None),
            ("p", None),
            ("", None),
        ] {
            assert_eq!(closest(written, words), expected, "{written:?}");
        }
        assert_eq!(closest(&"quota".repeat(1000), words), None);
    }

    #[test]
    fn of_many_words_few_are_told() {
        assert_eq!(hint("x", []), "; there are none");
        assert_eq!(hint("other", ["a", "b"]), "; use one of a, b");
        let names: Vec<_> = (0..1000).map(|number| format!("limit-{number}")).collect();
        let message = hint("other", names.iter().map(String::as_str));
        assert!(message.ends_with("limit-8, limit-9 and others"), "{message}");
        let ten = hint("other", names.iter().take(10).map(String::as_str));
        assert!(ten.ends_with("limit-8, limit-9"), "{ten}");
    }
}
