//! `CONFIG GET`: the settings that tools query at their start.

use super::codec::{Args, Writer};
use super::error::CommandError;

/// Settings of Redis, and what they would be in a server that keeps no keys.
const SETTINGS: [(&str, &str); 4] =
    [("save", ""), ("appendonly", "no"), ("databases", "1"), ("maxmemory", "0")];

pub(super) fn run(args: Args<'_>, out: &mut Writer) -> Result<(), CommandError> {
    if !args.is(1, "GET") {
        return Err(CommandError::unknown_subcommand("CONFIG", args.at(1)));
    }
    if args.len() < 3 {
        return Err(CommandError::arity("config|get"));
    }
    let is_asked =
        |name: &str| args.skip(2).iter().any(|pattern| matches(pattern, name.as_bytes()));
    let asked = SETTINGS.map(|(name, value)| is_asked(name).then_some((name, value)));
    out.map(asked.iter().flatten().count());
    for (name, value) in asked.into_iter().flatten() {
        out.bulk(name);
        out.bulk(value);
    }
    Ok(())
}

/// True if `text` matches a glob with `*` and `?`, in at most the product of their lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The last star, and how much of the text it was tried with.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || byte.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star_p, star_t)) = star else { return false };
                star = Some((star_p, star_t + 1));
                p = star_p + 1;
                t = star_t + 1;
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, is_match) in [
            ("save", "save", true),
            ("SAVE", "save", true),
            ("*", "save", true),
            ("*", "", true),
            ("", "", true),
            ("", "save", false),
            ("sa?e", "save", true),
            ("s*e", "save", true),
            ("*a*e", "save", true),
            ("*ab", "aab", true),
            ("s*x", "save", false),
            ("savex", "save", false),
            ("sav", "save", false),
            ("**?", "save", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), is_match, "{pattern} {text}");
        }
    }
}
