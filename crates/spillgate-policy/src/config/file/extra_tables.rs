//! A policy file that also holds the settings of a program.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::read;
use super::section::Section;
use super::value::Value;
use crate::config::PolicyBuilder;
use crate::{Error, Policy, Problem};

/// The text of a policy file, with the settings of the program that applies it in its
/// tables `[server]`, `[store]` and `[proxy]`.
///
/// ```
/// use spillgate_policy::{PolicyFile, Tables};
///
/// fn workers(tables: &mut Tables<'_, '_>) -> Option<u64> {
///     tables.server(|server| server.number("workers", 1..=64, 4)).flatten()
/// }
///
/// let file = PolicyFile::from_text("[server]\nworkers = 4\n[[limit]]\nname = 'api'\nquota = '5/s'");
/// let (policy, workers_of_file) = file.decode(workers)?;
/// assert_eq!(workers_of_file, Some(4));
/// assert!(policy.build()?.limits().eq(["api"]));
///
/// let bad = PolicyFile::from_text("[server]\nwrokers = 4");
/// let error = bad.decode(workers).unwrap_err();
/// assert!(error.to_string().ends_with("did you mean \"workers\"?"));
/// # Ok::<(), spillgate_policy::Error>(())
/// ```
#[derive(Clone)]
pub struct PolicyFile {
    text: String,
    path: Option<PathBuf>,
}

impl PolicyFile {
    /// Reads a file. Files that the policy names are relative to its folder.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let text = read(&path).map_err(|error| {
            let message = format!("the file {} cannot be read: {error}", path.display());
            Error::policy(vec![Problem::new(message)])
        })?;
        Ok(Self { text, path: Some(path) })
    }

    /// A text that is in no file. Files that the policy names are looked for in the working
    /// directory.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), path: None }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the text was read, if it was in a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The policy alone; `[server]`, `[store]` and `[proxy]` may say anything.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in it.
    pub fn policy(&self) -> Result<Policy, Error> {
        self.builder()?.build()
    }

    /// The policy alone, to which a program adds what a file cannot say.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in it.
    pub fn builder(&self) -> Result<PolicyBuilder, Error> {
        PolicyBuilder::read(&self.text, self.path.as_deref())
    }

    /// The policy, ready to be built, and what `decode` makes of the other tables. Parses the text
    /// once.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in the structure of either, in the order of the file, and what
    /// can be found wrong in the values of the policy then. If the structure is right, values
    /// are checked by [`build`](PolicyBuilder::build).
    pub fn decode<T>(
        &self,
        decode: impl FnOnce(&mut Tables<'_, '_>) -> T,
    ) -> Result<(PolicyBuilder, T), Error> {
        let mut decoded = None;
        let builder = PolicyBuilder::read_with(&self.text, self.path.as_deref(), |section| {
            decoded = Some(decode(&mut Tables(section)));
        })?;
        // It is called for every text that can be parsed.
        decoded.map(|decoded| (builder, decoded)).ok_or_else(|| Error::policy(Vec::new()))
    }
}

// A policy may hold secrets, so it is not shown.
debug_fields!(self: PolicyFile { path: self.path });

/// The tables of a program's settings.
pub struct Tables<'s, 'f>(&'s mut Section<'f>);

impl Tables<'_, '_> {
    /// What `decode` makes of `[server]`; `None` if there is no such table.
    pub fn server<T>(&mut self, decode: impl FnOnce(&mut Settings<'_, '_>) -> T) -> Option<T> {
        self.0.section("server", "[server]", |section| decode(&mut Settings(section)))
    }

    /// What `decode` makes of `[store]`; `None` if there is no such table.
    pub fn store<T>(&mut self, decode: impl FnOnce(&mut Settings<'_, '_>) -> T) -> Option<T> {
        self.0.section("store", "[store]", |section| decode(&mut Settings(section)))
    }

    /// What `decode` makes of `[proxy]`; `None` if there is no such table.
    pub fn proxy<T>(&mut self, decode: impl FnOnce(&mut Settings<'_, '_>) -> T) -> Option<T> {
        self.0.section("proxy", "[proxy]", |section| decode(&mut Settings(section)))
    }
}

debug_fields!(self: Tables<'_, '_> {});

/// A table of a program's settings. Keys that are never read are reported as unknown, and invalid
/// values with their line. Messages suggest the examples.
pub struct Settings<'s, 'f>(&'s mut Section<'f>);

impl Settings<'_, '_> {
    /// A text.
    pub fn text(&mut self, key: &'static str, example: &str) -> Option<String> {
        self.0.text(key, example).map(|text| text.value)
    }

    /// A text that `parse` reads, whose error says what to write.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        parsed(&self.0.value(key)?, example, parse)
    }

    /// A text like [`parsed`](Self::parsed) that no message may show.
    pub fn secret<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.0.value(key)?;
        let text = value.text(example)?.value;
        parse(&text).map_err(|error| value.refuse(&error)).ok()
    }

    /// A text, or several in a list, each of which `parse` reads.
    pub fn several<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let values = self.0.value(key)?.one_or_more(example);
        Some(values.iter().filter_map(|value| parsed(value, example, &parse)).collect())
    }

    /// A whole number.
    pub fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        example: u64,
    ) -> Option<u64> {
        self.0.number(key, range, example).map(|number| number.value)
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.0.boolean(key)
    }
}

fn parsed<T>(
    value: &Value<'_>,
    example: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let text = value.text(example)?.value;
    parse(&text).map_err(|error| value.refuse_text(&text, &error)).ok()
}

debug_fields!(self: Settings<'_, '_> {});

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
        text.parse().map_err(|error: T::Err| error.to_string())
    }

    fn problems(text: &str) -> String {
        let file = PolicyFile::from_text(text);
        let decoded = file.decode(|tables| {
            tables.store(|store| store.text("url", "redis://127.0.0.1"));
            tables.server(|server| {
                server.parsed("http", "127.0.0.1", read::<std::net::IpAddr>);
                server.secret("token", "1234", read::<u64>);
                server.several("ports", "7", read::<u8>);
                server.number("connections", 1..=10, 5);
                server.boolean("open");
            });
        });
        decoded.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn settings_and_policy_are_judged_together_in_the_order_of_the_file() {
        let text = "[server]\nhttp = 'here'\nconections = 5\nopen = 1\n[[limit]]\nname = 'a'\nquota = 'x'\n\
                    [store]\nurl = 1\n";
        let output = problems(text);
        let lines: Vec<_> = output.lines().map(|line| &line[..6]).collect();
        assert_eq!(lines, ["line 2", "line 3", "line 4", "line 7", "line 9"], "{output}");
        assert!(output.contains("server: http is \"here\"; invalid IP address syntax"), "{output}");
        assert!(output.contains("did you mean \"connections\"?"), "{output}");
        assert!(output.contains("server: open is a number; write true or false"), "{output}");
    }

    #[test]
    fn a_secret_is_not_shown_and_a_mistake_in_the_syntax_is_told_once() {
        let output = problems("[server]\ntoken = 'hush'\nports = ['1', '999']\n");
        assert!(output.contains("server: token: invalid digit"), "{output}");
        assert!(!output.contains("hush"), "{output}");
        assert!(output.contains("server: ports, entry 2 is \"999\""), "{output}");
        assert_eq!(problems("[server]\nhttp = = 1\n").matches("not TOML").count(), 1);
    }

    #[test]
    fn without_the_table_there_are_no_settings() {
        let server = |text| PolicyFile::from_text(text).decode(|tables| tables.server(|_| ()));
        assert!(server("limit = []").unwrap().1.is_none());
        assert!(server("server = 1").is_err());
    }
}
