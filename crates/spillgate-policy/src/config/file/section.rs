//! One table of the file. Keys that are never read are unknown.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml::de::DeTable;

use super::report::Report;
use super::value::{Number, Value, joined};
use crate::config::spec::At;
use crate::suggest::{closest, quoted};

/// A table of the file.
pub(crate) struct Section<'f> {
    table: &'f DeTable<'f>,
    /// Where it begins: its header, or the whole table if that is in a line.
    span: Range<usize>,
    /// What messages call it: `limit "public"`. Nothing for the file itself.
    title: String,
    asked: Vec<&'static str>,
    /// True if a key may be any word.
    open: bool,
    /// True if a key that is not known may be a secret.
    hides_keys: bool,
    report: &'f Report,
}

impl<'f> Section<'f> {
    /// The file itself.
    pub(super) fn file(table: &'f DeTable<'f>, report: &'f Report) -> Self {
        Self::new(table, 0..0, String::new(), report)
    }

    pub(super) fn new(
        table: &'f DeTable<'f>,
        span: Range<usize>,
        title: String,
        report: &'f Report,
    ) -> Self {
        Self { table, span, title, asked: Vec::new(), open: false, hides_keys: false, report }
    }

    /// Decodes the section, and reports the keys that were not asked for.
    pub(super) fn read<T>(mut self, decode: impl FnOnce(&mut Self) -> T) -> T {
        let decoded = decode(&mut self);
        self.finish();
        decoded
    }

    /// Gives the section a title that tells more.
    pub(super) fn rename(&mut self, title: String) {
        self.title = title;
    }

    /// Shows no key that is not known: it may be a secret in the wrong place.
    pub(super) fn hide_keys(&mut self) {
        self.hides_keys = true;
    }

    /// Where the section begins.
    pub(super) fn at(&self) -> At<()> {
        At::new((), self.span.clone())
    }

    /// The value of a key, if it is there.
    pub(super) fn value(&mut self, key: &'static str) -> Option<Value<'f>> {
        self.asked.push(key);
        Value::new(self.table.get(key)?, &self.title, key.to_owned(), self.report)
    }

    /// True if the key is there, whatever its value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// True if there is no key.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Lets a key be there that others read.
    pub(super) fn ignore(&mut self, key: &'static str) {
        self.asked.push(key);
    }

    /// A text.
    pub(super) fn text(&mut self, key: &'static str, example: &str) -> Option<At<String>> {
        self.value(key)?.text(example)
    }

    /// A text that must be there.
    pub(super) fn required(&mut self, key: &'static str, example: &str) -> Option<At<String>> {
        self.expect(key, &format!("{example:?}"));
        self.text(key, example)
    }

    /// Reports a key that is not there.
    pub(super) fn expect(&self, key: &str, example: &str) {
        if !self.has(key) {
            let message = format!("{} has no {key}; add {key} = {example}", self.title);
            self.report.add_missing(&self.span, message);
        }
    }

    /// A number.
    pub(super) fn number<T: Number>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
        example: T,
    ) -> Option<At<T>> {
        self.value(key)?.number(range, example)
    }

    /// A number that may have a fraction.
    pub(super) fn decimal(&mut self, key: &'static str, example: f64) -> Option<At<f64>> {
        self.value(key)?.decimal(example)
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.value(key)?.boolean()
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Option<At<T>> {
        self.value(key)?.word(words)
    }

    /// A text, or a list of at least one.
    pub(super) fn texts(&mut self, key: &'static str, example: &str) -> Option<Vec<At<String>>> {
        let values = self.value(key)?.one_or_more(example);
        Some(values.iter().filter_map(|value| value.text(example)).collect())
    }

    /// A list of texts, perhaps of none.
    pub(super) fn list(&mut self, key: &'static str, example: &str) -> Option<Vec<At<String>>> {
        self.value(key)?.list(example)
    }

    /// A list of at least one text.
    pub(super) fn filled_list(
        &mut self,
        key: &'static str,
        example: &str,
    ) -> Option<Vec<At<String>>> {
        let value = self.value(key)?;
        value.refuse_empty(example);
        value.list(example)
    }

    /// A table.
    pub(super) fn section<T>(
        &mut self,
        key: &'static str,
        example: &str,
        decode: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        Some(self.value(key)?.section(example)?.read(decode))
    }

    /// A list of tables. Those that cannot be decoded are left out.
    pub(super) fn sections<T>(
        &mut self,
        key: &'static str,
        header: &str,
        mut decode: impl FnMut(&mut Self) -> Option<T>,
    ) -> Vec<T> {
        let sections = self.value(key).map(|value| value.sections(header)).unwrap_or_default();
        sections.into_iter().filter_map(|section| section.read(&mut decode)).collect()
    }

    /// The texts of all keys that were not asked for yet, whatever they are called.
    pub(super) fn other_texts(&mut self, example: &str) -> BTreeMap<String, At<String>> {
        let others = self.others().into_iter();
        others.filter_map(|(key, value)| Some((key, value.text(example)?))).collect()
    }

    /// The values of all keys that were not asked for yet, whatever they are called.
    pub(super) fn others_of<T>(
        &mut self,
        decode: impl Fn(&Value<'f>) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let others = self.others().into_iter();
        others.filter_map(|(key, value)| Some((key, decode(&value)?))).collect()
    }

    /// The tables of all keys that were not asked for yet, whatever they are called.
    pub(super) fn other_sections<T>(
        &mut self,
        example: &str,
        decode: impl Fn(&mut Self) -> T,
    ) -> BTreeMap<String, T> {
        let others = self.others().into_iter();
        others
            .filter_map(|(key, value)| {
                let mut section = value.section(example)?;
                section.title = format!("{} {}", self.title, quoted(&key));
                Some((key, section.read(&decode)))
            })
            .collect()
    }

    fn others(&mut self) -> Vec<(String, Value<'f>)> {
        self.open = true;
        let others = self.table.iter().filter(|(key, _)| !self.is_known(key.get_ref()));
        others
            .filter_map(|(key, written)| {
                let name = quoted(key.get_ref());
                Some((key.to_string(), Value::new(written, &self.title, name, self.report)?))
            })
            .collect()
    }

    fn is_known(&self, key: &str) -> bool {
        self.asked.contains(&key)
    }

    fn finish(self) {
        if self.open {
            return;
        }
        for key in self.table.keys() {
            let span = key.span();
            if !self.is_known(key.get_ref()) && self.report.is_sound(&span) {
                self.report.add(&span, self.unknown(key.get_ref()));
            }
        }
    }

    fn unknown(&self, key: &str) -> String {
        let shown = if self.hides_keys { String::new() } else { format!(" {}", quoted(key)) };
        let message = joined(&self.title, ": ", &format!("unknown key{shown}"));
        match closest(key, self.asked.iter().copied()) {
            Some(known) => format!("{message}; did you mean {known:?}?"),
            None => format!("{message}; known are {}", self.asked.join(", ")),
        }
    }
}
