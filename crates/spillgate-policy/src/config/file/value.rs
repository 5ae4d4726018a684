//! One value of the file, and what is said if it is not what it should be.

use std::fmt;
use std::ops::RangeInclusive;

use spillgate::Timestamp;
use toml::Spanned;
use toml::de::DeValue;

use super::report::Report;
use super::section::Section;
use crate::config::spec::At;
use crate::rfc3339;
use crate::suggest::{closest, cut, quoted};

/// A value of whatever type it may be.
pub(super) struct Value<'f> {
    written: &'f Spanned<DeValue<'f>>,
    /// The title of the section it is in.
    owner: String,
    /// What the section calls it.
    name: String,
    report: &'f Report,
}

/// A type that whole numbers of the file are decoded into.
pub(super) trait Number: Copy + fmt::Display + Into<i128> + TryFrom<i128> {}

impl<T: Copy + fmt::Display + Into<i128> + TryFrom<i128>> Number for T {}

impl<'f> Value<'f> {
    /// `None` if the value is not to be judged.
    pub(super) fn new(
        written: &'f Spanned<DeValue<'f>>,
        owner: &str,
        name: String,
        report: &'f Report,
    ) -> Option<Self> {
        let value = Self { written, owner: owner.to_owned(), name, report };
        report.is_sound(&written.span()).then_some(value)
    }

    /// The value as the parser has it.
    pub(super) fn written(&self) -> &'f DeValue<'f> {
        self.written.get_ref()
    }

    /// Something, at the place of this value.
    pub(super) fn at<T>(&self, decoded: T) -> At<T> {
        At::new(decoded, self.written.span())
    }

    /// Reports the value: its name, and what is to be said of it.
    fn problem(&self, message: &str) {
        let name = joined(&self.owner, ": ", &self.name);
        self.report.add(&self.written.span(), format!("{name} {message}"));
    }

    /// Reports that the value has the wrong type. It is not shown: it may be a secret.
    pub(super) fn wrong_type(&self, right: &str) {
        let is = match self.written() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a decimal number",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.problem(&format!("is {is}; write {right}"));
    }

    /// Reports a text that means nothing here, with what to write instead.
    pub(super) fn refuse_text(&self, text: &str, right: &str) {
        self.problem(&format!("is {}; {right}", quoted(text)));
    }

    /// Reports a value that may be a secret, with what is wrong.
    pub(super) fn refuse(&self, wrong: &str) {
        let name = joined(&self.owner, ": ", &self.name);
        self.report.add(&self.written.span(), format!("{name}: {wrong}"));
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        let DeValue::Boolean(boolean) = self.written() else {
            self.wrong_type("true or false");
            return None;
        };
        Some(*boolean)
    }

    pub(super) fn text(&self, example: &str) -> Option<At<String>> {
        let DeValue::String(text) = self.written() else {
            self.wrong_type(&format!("a text, such as {example:?}"));
            return None;
        };
        Some(self.at(text.to_string()))
    }

    /// What one of a few words stands for.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<At<T>> {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let right: Vec<_> = known.iter().map(|word| format!("{word:?}")).collect();
        let right = right.join(" or ");
        let DeValue::String(written) = self.written() else {
            self.wrong_type(&right);
            return None;
        };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| word == written) {
            return Some(self.at(*meaning));
        }
        let meant = closest(written, known).map(|word| format!("; did you mean {word:?}?"));
        let meant = meant.unwrap_or_default();
        self.problem(&format!("is {}; write {right}{meant}", quoted(written)));
        None
    }

    pub(super) fn number<T: Number>(&self, range: RangeInclusive<T>, example: T) -> Option<At<T>> {
        let DeValue::Integer(written) = self.written() else {
            self.wrong_type(&format!("a number, such as {example}"));
            return None;
        };
        // What has more digits than this is out of every range.
        let beyond = if written.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
        let number = i128::from_str_radix(written.as_str(), written.radix()).unwrap_or(beyond);
        let (least, most) = range.into_inner();
        let right = if number < least.into() {
            format!("at least {least}")
        } else if number > most.into() {
            format!("at most {most}")
        } else {
            return T::try_from(number).ok().map(|number| self.at(number));
        };
        self.problem(&format!("is {}; write {right}", cut(&written.to_string())));
        None
    }

    /// A number that may have a fraction.
    pub(super) fn decimal(&self, example: f64) -> Option<At<f64>> {
        let number = match self.written() {
            DeValue::Float(written) => written.as_str().parse().ok(),
            DeValue::Integer(written) => {
                let number = i128::from_str_radix(written.as_str(), written.radix());
                number.ok().map(|number| number as f64)
            }
            _ => None,
        };
        if number.is_none() {
            self.wrong_type(&format!("a number, such as {example}"));
        }
        number.map(|number| self.at(number))
    }

    /// The value itself, or its entries if it is a list. There must be one.
    pub(super) fn one_or_more(self, example: &str) -> Vec<Self> {
        self.refuse_empty(example);
        match self.written() {
            DeValue::Array(entries) => self.entries(entries),
            _ => vec![self],
        }
    }

    pub(super) fn refuse_empty(&self, example: &str) {
        if self.written().as_array().is_some_and(|entries| entries.is_empty()) {
            self.problem(&format!("is an empty list; write [{example:?}], or leave it out"));
        }
    }

    pub(super) fn list(&self, example: &str) -> Option<Vec<At<String>>> {
        let DeValue::Array(entries) = self.written() else {
            self.wrong_type(&format!("a list, such as [{example:?}]"));
            return None;
        };
        let mut texts = Vec::with_capacity(entries.len());
        for (entry, number) in entries.iter().zip(1..) {
            match entry.get_ref() {
                // Lists may be long, so what is right needs no name for messages.
                DeValue::String(text) if self.report.is_sound(&entry.span()) => {
                    texts.push(At::new(text.to_string(), entry.span()));
                }
                _ => texts.extend(self.entry(entry, number).and_then(|it| it.text(example))),
            }
        }
        Some(texts)
    }

    /// A list of texts, and of tables that say more.
    pub(super) fn items<T: From<At<String>>>(
        &self,
        example: &str,
        mut decode: impl FnMut(&mut Section<'f>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let DeValue::Array(entries) = self.written() else {
            self.wrong_type(&format!("a list, such as [{example:?}]"));
            return None;
        };
        let mut items = Vec::with_capacity(entries.len());
        for (entry, number) in entries.iter().zip(1..) {
            match entry.get_ref() {
                // As in `list`.
                DeValue::String(text) if self.report.is_sound(&entry.span()) => {
                    items.push(At::new(text.to_string(), entry.span()).into());
                }
                DeValue::Table(_) => {
                    let section = self.entry(entry, number).and_then(|it| it.section(""));
                    items.extend(section.and_then(|section| section.read(&mut decode)));
                }
                _ => {
                    let item = self.entry(entry, number).and_then(|it| it.text(example));
                    items.extend(item.map(T::from));
                }
            }
        }
        Some(items)
    }

    /// A time with its zone, as a date of TOML or as a text.
    pub(super) fn moment(&self) -> Option<Timestamp> {
        let moment = match self.written() {
            DeValue::Datetime(written) => rfc3339::from_toml(written),
            DeValue::String(text) => rfc3339::parse(text),
            _ => {
                self.wrong_type("a time, such as 2027-01-01T00:00:00Z");
                return None;
            }
        };
        moment.map_err(|wrong| self.refuse(&wrong)).ok()
    }

    fn entry(&self, entry: &'f Spanned<DeValue<'f>>, number: usize) -> Option<Self> {
        Self::new(entry, &self.owner, format!("{}, entry {number}", self.name), self.report)
    }

    pub(super) fn section(&self, example: &str) -> Option<Section<'f>> {
        let DeValue::Table(table) = self.written() else {
            self.wrong_type(&format!("a table, such as {example}"));
            return None;
        };
        let title = joined(&self.owner, ", ", &self.name);
        Some(Section::new(table, self.written.span(), title, self.report))
    }

    pub(super) fn sections(&self, header: &str) -> Vec<Section<'f>> {
        let DeValue::Array(tables) = self.written() else {
            self.wrong_type(&format!("{header} above each"));
            return Vec::new();
        };
        let table = |(table, number): (_, usize)| {
            Self::new(table, &self.owner, format!("{} {number}", self.name), self.report)
        };
        let tables = tables.iter().zip(1..).filter_map(table);
        tables.filter_map(|value| value.section(header)).collect()
    }

    fn entries(&self, entries: &'f [Spanned<DeValue<'f>>]) -> Vec<Self> {
        entries.iter().zip(1..).filter_map(|(entry, number)| self.entry(entry, number)).collect()
    }
}

/// A name below another, if there is one.
pub(super) fn joined(owner: &str, separator: &str, name: &str) -> String {
    if owner.is_empty() { name.to_owned() } else { format!("{owner}{separator}{name}") }
}
