//! Adaptive limits, and how much requests matter.

use toml::de::DeValue;

use super::section::Section;
use super::value::Value;
use crate::config::spec::{Adaptive, At, Level, Match, Priorities, PriorityRule};

pub(super) fn adaptive(section: &mut Section<'_>) -> Adaptive {
    Adaptive {
        controller: section.text("controller", "auto"),
        signal: section.text("signal", "cpu"),
        target: level(section, "target", "0.8 or \"40ms\""),
        threshold: section.decimal("threshold", 0.95),
        aggression: section.decimal("aggression", 1.0),
        min: level(section, "min", "10 or \"10/s\""),
        max: level(section, "max", "500 or \"200/s\""),
        start: level(section, "start", "100 or \"100/s\""),
        closure: None,
        at: section.at(),
    }
}

fn level(section: &mut Section<'_>, key: &'static str, example: &str) -> Option<At<Level>> {
    let value: Value<'_> = section.value(key)?;
    let level = match value.written() {
        DeValue::String(text) => Level::Text(text.to_string()),
        DeValue::Integer(_) | DeValue::Float(_) => Level::Number(value.decimal(1.0)?.value),
        _ => {
            value.wrong_type(&format!("a number or a text, such as {example}"));
            return None;
        }
    };
    Some(value.at(level))
}

pub(super) fn priority(section: &mut Section<'_>) -> Priorities {
    let tiers = section.section("tier", r#"{ gold = "high" }"#, |tiers| tiers.other_texts("high"));
    Priorities {
        default: section.text("default", "normal"),
        header: section.text("header", "x-priority"),
        tier: tiers.unwrap_or_default(),
        rules: section.sections("rule", "[[priority.rule]]", rule),
        at: section.at(),
    }
}

fn rule(section: &mut Section<'_>) -> Option<PriorityRule> {
    let matches = section.section("match", r#"{ path = "/checkout" }"#, conditions);
    let class = section.required("class", "critical");
    Some(PriorityRule { class: class?, matches: matches.unwrap_or_default(), at: section.at() })
}

fn conditions(section: &mut Section<'_>) -> Match {
    Match {
        path: section.texts("path", "/checkout").unwrap_or_default(),
        method: section.texts("method", "POST").unwrap_or_default(),
        host: section.texts("host", "api.example.com").unwrap_or_default(),
        header: section
            .section("header", r#"{ "x-prefetch" = "*" }"#, |headers| headers.other_texts("*"))
            .unwrap_or_default(),
        ..Match::default()
    }
}
