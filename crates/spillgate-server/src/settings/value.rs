//! Types of settings: parsed from a flag, a variable or the file, checked against a range, shown.
//! An error says what to write.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value as Json, json};
use spillgate_policy::Settings as Table;

/// A type of setting.
pub(super) trait Value: Clone + PartialEq + Send + Sync + 'static {
    /// What ranges are of.
    type Bound;
    /// What help calls a value.
    const PLACEHOLDER: &'static str;
    /// What messages suggest if there is no default.
    const EXAMPLE: &'static str;
    /// True if no message may show it.
    const IS_SECRET: bool = false;
    const IS_NUMBER: bool = false;

    fn parse(text: &str) -> Result<Self, String>;

    /// As it is written, if it is a value to show.
    fn shown(&self) -> Option<String> {
        None
    }

    /// Configures a flag. A secret is parsed later: errors of clap show values.
    fn arg(arg: Arg) -> Arg {
        let arg = arg.value_name(Self::PLACEHOLDER);
        if Self::IS_SECRET { arg } else { arg.value_parser(Self::parse as fn(&str) -> _) }
    }

    fn from_args(args: &ArgMatches, id: &str) -> Option<Result<Self, String>> {
        if Self::IS_SECRET {
            return args.try_get_one::<String>(id).ok()?.map(|text| Self::parse(text));
        }
        args.try_get_one::<Self>(id).ok()?.cloned().map(Ok)
    }

    fn decode(
        table: &mut Table<'_, '_>,
        key: &'static str,
        example: &str,
        range: Option<&RangeInclusive<Self::Bound>>,
    ) -> Option<Self> {
        let parse = |text: &str| {
            let value = Self::parse(text)?;
            let wrong = range.and_then(|range| value.out_of_range(range));
            wrong.map_or(Ok(value), Err)
        };
        match Self::IS_SECRET {
            true => table.secret(key, example, parse),
            false => table.parsed(key, example, parse),
        }
    }

    /// What to write, if the value is out of range.
    fn out_of_range(&self, _range: &RangeInclusive<Self::Bound>) -> Option<String> {
        None
    }

    fn range_text(_range: &RangeInclusive<Self::Bound>) -> String {
        String::new()
    }

    /// What the file may say, as JSON schema.
    fn schema(_range: Option<&RangeInclusive<Self::Bound>>) -> Json {
        json!({ "type": "string", "examples": [Self::EXAMPLE] })
    }

    /// The same in a file of this folder.
    fn relative_to(self, _folder: &Path) -> Self {
        self
    }

    /// The same if the file were in another folder.
    fn moved(self, _from: &Path, _to: &Path) -> Self {
        self
    }

    /// The value that turns something off, if there is one.
    fn off() -> Option<Self> {
        None
    }
}

impl<T: Value> Value for Option<T> {
    type Bound = T::Bound;
    const PLACEHOLDER: &'static str = T::PLACEHOLDER;
    const EXAMPLE: &'static str = T::EXAMPLE;
    const IS_SECRET: bool = T::IS_SECRET;
    const IS_NUMBER: bool = T::IS_NUMBER;

    fn parse(text: &str) -> Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn shown(&self) -> Option<String> {
        self.as_ref().and_then(T::shown)
    }

    fn arg(arg: Arg) -> Arg {
        T::arg(arg)
    }

    fn from_args(args: &ArgMatches, id: &str) -> Option<Result<Self, String>> {
        Some(T::from_args(args, id)?.map(Some))
    }

    fn decode(
        table: &mut Table<'_, '_>,
        key: &'static str,
        example: &str,
        range: Option<&RangeInclusive<Self::Bound>>,
    ) -> Option<Self> {
        T::decode(table, key, example, range).map(Some)
    }

    fn out_of_range(&self, range: &RangeInclusive<Self::Bound>) -> Option<String> {
        self.as_ref().and_then(|value| value.out_of_range(range))
    }

    fn range_text(range: &RangeInclusive<Self::Bound>) -> String {
        T::range_text(range)
    }

    fn schema(range: Option<&RangeInclusive<Self::Bound>>) -> Json {
        T::schema(range)
    }

    fn relative_to(self, folder: &Path) -> Self {
        self.map(|value| value.relative_to(folder))
    }

    fn moved(self, from: &Path, to: &Path) -> Self {
        self.map(|value| value.moved(from, to))
    }

    fn off() -> Option<Self> {
        T::off().map(Some)
    }
}

/// Several: in a flag or variable with commas between them, in the file as a list.
impl<T: Value> Value for Vec<T> {
    type Bound = T::Bound;
    const PLACEHOLDER: &'static str = T::PLACEHOLDER;
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(T::parse).collect()
    }

    fn shown(&self) -> Option<String> {
        let values = self.iter().map(T::shown).collect::<Option<Vec<_>>>()?;
        (!values.is_empty()).then(|| values.join(", "))
    }

    fn arg(arg: Arg) -> Arg {
        T::arg(arg).value_delimiter(',').action(ArgAction::Append)
    }

    fn from_args(args: &ArgMatches, id: &str) -> Option<Result<Self, String>> {
        let values = args.try_get_many::<T>(id).ok()??;
        Some(Ok(values.cloned().collect()))
    }

    fn decode(
        table: &mut Table<'_, '_>,
        key: &'static str,
        example: &str,
        _range: Option<&RangeInclusive<Self::Bound>>,
    ) -> Option<Self> {
        table.several(key, example, T::parse)
    }

    fn schema(range: Option<&RangeInclusive<Self::Bound>>) -> Json {
        let one = T::schema(range);
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

impl Value for bool {
    type Bound = Self;
    const PLACEHOLDER: &'static str = "BOOL";
    const EXAMPLE: &'static str = "true";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "write true or false".to_owned())
    }

    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn arg(arg: Arg) -> Arg {
        let arg = arg.value_name(Self::PLACEHOLDER).num_args(0..=1).require_equals(true);
        arg.default_missing_value("true").value_parser(ValueParser::bool()).action(ArgAction::Set)
    }

    fn decode(
        table: &mut Table<'_, '_>,
        key: &'static str,
        _example: &str,
        _range: Option<&RangeInclusive<Self>>,
    ) -> Option<Self> {
        table.boolean(key)
    }

    fn schema(_range: Option<&RangeInclusive<Self>>) -> Json {
        json!({ "type": "boolean" })
    }
}

impl Value for usize {
    type Bound = u64;
    const PLACEHOLDER: &'static str = "NUMBER";
    const EXAMPLE: &'static str = "10";
    const IS_NUMBER: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "write a whole number".to_owned())
    }

    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn decode(
        table: &mut Table<'_, '_>,
        key: &'static str,
        example: &str,
        range: Option<&RangeInclusive<u64>>,
    ) -> Option<Self> {
        let (range, example) = (range.cloned().unwrap_or(0..=u64::MAX), example.parse());
        let number = table.number(key, range, example.unwrap_or(1))?;
        Self::try_from(number).ok()
    }

    fn out_of_range(&self, range: &RangeInclusive<u64>) -> Option<String> {
        let (own, least, most) = (*self as u64, *range.start(), *range.end());
        match own {
            own if own < least => Some(format!("write at least {least}")),
            own if own > most => Some(format!("write at most {most}")),
            _ => None,
        }
    }

    fn schema(range: Option<&RangeInclusive<u64>>) -> Json {
        let (least, most) = range.map_or((0, u64::MAX), |range| (*range.start(), *range.end()));
        json!({ "type": "integer", "minimum": least, "maximum": most })
    }

    fn range_text(range: &RangeInclusive<u64>) -> String {
        format!("{} to {}", range.start(), range.end())
    }
}

/// In the file, relative to its folder.
impl Value for PathBuf {
    type Bound = ();
    const PLACEHOLDER: &'static str = "PATH";
    const EXAMPLE: &'static str = "/etc/spillgate/file";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }

    fn shown(&self) -> Option<String> {
        Some(self.display().to_string())
    }

    fn arg(arg: Arg) -> Arg {
        arg.value_name(Self::PLACEHOLDER).value_parser(ValueParser::path_buf())
    }

    fn relative_to(self, folder: &Path) -> Self {
        folder.join(self)
    }

    fn moved(self, from: &Path, to: &Path) -> Self {
        self.strip_prefix(from).map(|inside| to.join(inside)).unwrap_or(self)
    }
}

impl Value for String {
    type Bound = ();
    const PLACEHOLDER: &'static str = "NAME";
    const EXAMPLE: &'static str = "name";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn shown(&self) -> Option<String> {
        Some(self.clone())
    }
}

/// Implements [`Value`] for a type with a few values, each of which has a word.
macro_rules! words {
    ($T:ty, [$first:literal => $value:expr $(, $word:literal => $other:expr)+ $(,)?]) => {
        impl $crate::settings::value::Value for $T {
            type Bound = ();
            const PLACEHOLDER: &'static str = concat!($first $(, "|", $word)+);
            const EXAMPLE: &'static str = $first;

            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $first => Ok($value),
                    $($word => Ok($other),)+
                    _ => Err($crate::settings::value::one_of(&[$first $(, $word)+])),
                }
            }

            fn shown(&self) -> Option<String> {
                let words = [($first, $value) $(, ($word, $other))+];
                let word = words.iter().find(|(_, value)| value == self);
                word.map(|(word, _)| (*word).to_owned())
            }

            fn schema(_range: Option<&std::ops::RangeInclusive<()>>) -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": [$first $(, $word)+] })
            }
        }
    };
}

/// Implements `Debug` for secrets.
macro_rules! hidden {
    ($($T:ident),+) => {$(
        impl std::fmt::Debug for $T {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($T), "(hidden)"))
            }
        }
    )+};
}

pub(super) use {hidden, words};

/// What to write if there are a few words.
pub(super) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("write {} or {last}", rest.join(", ")),
        _ => format!("write {}", quoted.concat()),
    }
}
