mod anything;
mod decoded;
mod manual;
mod problems;
mod syntax;
mod values;

use super::decode;

const COMPLETE: &str = include_str!("../complete.toml");

/// A limit that has all it needs, and room for more.
const LIMIT: &str = "[[limit]]\nname = \"public\"\nquota = \"10/s\"\n";

fn problems(text: &str) -> Vec<String> {
    let (_, problems) = decode(text, None);
    problems
        .iter()
        .map(|problem| {
            let place = problem.place().unwrap();
            format!("{}:{}: {}", place.line, place.column, problem.message())
        })
        .collect()
}

/// Checks texts against everything that is wrong in them.
fn check(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(problems(text), *expected, "{text}");
    }
}

/// As [`check`], for keys of a limit. The text begins in line 4.
fn check_limit(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(problems(&format!("{LIMIT}{text}")), *expected, "{text}");
    }
}
