//! How settings are declared: one entry of [`settings!`] defines flag, environment variable, key in
//! the file, range, and whether a change needs a restart.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use clap::{Arg, ArgMatches};
use serde_json::Value as Json;
use spillgate_policy::Settings as Table;

use super::value::Value;

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Server,
    Store,
    Proxy,
}

impl Section {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Store => "store",
            Self::Proxy => "proxy",
        }
    }

    /// What tells a setting from those of other tables: `max-connections`, `store-username`.
    fn id(self, key: &str) -> String {
        match self {
            Self::Server => key.to_owned(),
            Self::Store if key == "url" => "store".to_owned(),
            Self::Store | Self::Proxy => format!("{}-{key}", self.name()),
        }
    }

    /// What messages call a setting that is not in the file: `max-connections`, `store username`.
    fn label(self, key: &str) -> String {
        match self {
            Self::Server => key.to_owned(),
            Self::Store | Self::Proxy => format!("{} {key}", self.name()),
        }
    }
}

/// A setting as operators see it.
pub(super) struct Declaration {
    pub(super) section: Section,
    pub(super) key: &'static str,
    pub(super) arg: Arg,
    /// What the file may say, as JSON schema.
    pub(super) schema: Json,
    /// What the documentation says of it.
    #[cfg(test)]
    pub(super) row: Row,
}

/// Cells of the documentation: key, default, range, and whether a reload applies it.
#[cfg(test)]
pub(super) type Row = [String; 4];

/// What a declaration says of a setting.
pub(super) struct Spec<T: Value> {
    pub(super) section: Section,
    pub(super) key: &'static str,
    pub(super) default: T,
    pub(super) range: Option<RangeInclusive<T::Bound>>,
}

impl<T: Value> Spec<T> {
    /// The setting as a flag and a variable, with its help.
    pub(super) fn declaration(
        self,
        heading: &'static str,
        help: &[&str],
        #[cfg_attr(not(test), expect(unused_variables))] reload: &str,
        off: &[&str],
    ) -> Declaration {
        let Self { section, key, default, range } = self;
        let is_off = section == Section::Server && off.contains(&key);
        let default = if is_off { T::off().unwrap_or(default) } else { default };
        let default = default.shown().unwrap_or_default();
        let mut schema = T::schema(range.as_ref());
        let range = range.as_ref().map(T::range_text).unwrap_or_default();
        let mut text = help.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        if is_off {
            text.truncate(text.find(" [default: ").unwrap_or(text.len()));
        }
        if !default.is_empty() {
            text = format!("{text} [default: {default}]");
        }
        if !range.is_empty() {
            let end = text.find(" [default: ").unwrap_or(text.len());
            text.insert_str(end, &format!(" [range: {range}]"));
        }
        schema["description"] = text.clone().into();
        let id = section.id(key);
        let flag = if section == Section::Proxy { key.to_owned() } else { id.clone() };
        let env = format!("SPILLGATE_{}", id.to_uppercase().replace('-', "_"));
        let arg = Arg::new(id).long(flag).env(env).help(text).help_heading(heading);
        let arg = T::arg(arg.hide_env_values(T::IS_SECRET));
        Declaration {
            section,
            key,
            arg,
            schema,
            #[cfg(test)]
            row: [key, &default, &range, if reload == "restart" { "no" } else { "yes" }]
                .map(Into::into),
        }
    }
}

/// Where values come from. Precedence: flag, environment variable, file, default.
pub(super) struct Sources<'a> {
    /// Flags and environment variables.
    args: &'a ArgMatches,
    /// The folder of the file, which relative paths in it refer to.
    folder: &'a Path,
    /// Listeners that are off by default.
    off: &'static [&'static str],
    pub(super) problems: Vec<String>,
    /// What was set, to whatever value.
    set: Vec<(Section, &'static str)>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(
        args: &'a ArgMatches,
        folder: &'a Path,
        off: &'static [&'static str],
    ) -> Self {
        Self { args, folder, off, problems: Vec::new(), set: Vec::new() }
    }

    /// The keys of a table that were set anywhere.
    pub(super) fn set_in(&self, section: Section) -> impl Iterator<Item = &'static str> {
        self.set.iter().filter(move |(own, _)| *own == section).map(|(_, key)| *key)
    }

    /// The value of a setting. What is wrong in the file is reported there.
    pub(super) fn value<T: Value>(
        &mut self,
        spec: Spec<T>,
        table: Option<&mut Table<'_, '_>>,
    ) -> T {
        let Spec { section, key, default, range } = spec;
        let example = default.shown().unwrap_or_else(|| T::EXAMPLE.to_owned());
        let in_file = table.and_then(|table| T::decode(table, key, &example, range.as_ref()));
        let in_file = in_file.filter(|_| !self.has_alternative(&section.id(key)));
        let in_file = in_file.map(|value| value.relative_to(self.folder));
        let value = self.arg(section, key, range.as_ref()).or(in_file);
        if value.is_some() {
            self.set.push((section, key));
        }
        let is_off = section == Section::Server && self.off.contains(&key);
        value.or_else(|| T::off().filter(|_| is_off)).unwrap_or(default)
    }

    fn arg<T: Value>(
        &mut self,
        section: Section,
        key: &str,
        range: Option<&RangeInclusive<T::Bound>>,
    ) -> Option<T> {
        let label = section.label(key);
        let value = T::from_args(self.args, &section.id(key))?;
        let value = value.map_err(|why| format!("{label}: {why}")).and_then(|value| {
            let wrong = range.and_then(|range| value.out_of_range(range));
            let shown = value.shown().unwrap_or_default();
            let shown = if T::IS_NUMBER { shown } else { format!("{shown:?}") };
            wrong.map_or(Ok(value), |right| Err(format!("{label} is {shown}; {right}")))
        });
        value.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// True if a flag or variable holds the other one of a secret and its file: then the value in
    /// the configuration file does not count.
    fn has_alternative(&self, id: &str) -> bool {
        let other = id.strip_suffix("-file").map_or_else(|| format!("{id}-file"), str::to_owned);
        self.args.try_contains_id(&other).unwrap_or(false)
    }
}

/// A setting that changed, as a path of the file: `server.max-connections`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingChange {
    pub(super) section: Section,
    pub(super) key: &'static str,
    pub(crate) needs_restart: bool,
    /// The values before and after; `None` if it is a secret.
    pub(crate) values: Option<[String; 2]>,
}

impl SettingChange {
    /// A setting that has another value, and whether that needs a restart.
    pub(super) fn new<T: Value>(
        (section, key): (Section, &'static str),
        (old, new): (&T, &T),
        needs_restart: bool,
    ) -> Self {
        let shown = |value: &T| value.shown().unwrap_or_else(|| NOT_SET.to_owned());
        let values = (!T::IS_SECRET).then(|| [shown(old), shown(new)]);
        Self { section, key, needs_restart, values }
    }

    pub(super) fn is_of_same_key(&self, other: &Self) -> bool {
        (self.section, self.key) == (other.section, other.key)
    }

    pub(crate) fn is_of_store(&self) -> bool {
        self.section == Section::Store
    }
}

/// What is shown in place of a value that there is not.
pub(super) const NOT_SET: &str = "not set";

impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section.name(), self.key)
    }
}

/// Whether a change needs a restart.
pub(super) mod change {
    /// A reload applies it.
    pub(in crate::settings) fn live<T>(_old: &T, _new: &T) -> bool {
        false
    }

    /// It takes effect at the next start.
    pub(in crate::settings) fn restart<T>(_old: &T, _new: &T) -> bool {
        true
    }

    /// A reload applies another value, but not whether there is one.
    pub(in crate::settings) fn toggle<T>(old: &Option<T>, new: &Option<T>) -> bool {
        old.is_some() != new.is_some()
    }
}

/// The name of a field as a key: `max_connections` is `max-connections`.
pub(super) const fn kebab<const N: usize>(field: &str) -> [u8; N] {
    let (bytes, mut key, mut at) = (field.as_bytes(), [0; N], 0);
    while at < N {
        key[at] = if bytes[at] == b'_' { b'-' } else { bytes[at] };
        at += 1;
    }
    key
}

macro_rules! key {
    ($field:ident) => {{
        const BYTES: [u8; stringify!($field).len()] =
            $crate::settings::declare::kebab(stringify!($field));
        const KEY: &str = match std::str::from_utf8(&BYTES) {
            Ok(key) => key,
            Err(_) => stringify!($field),
        };
        KEY
    }};
}

/// Declares the settings of a table, each in one entry under its heading of the help:
///
/// ```text
/// /// Help, in one line
/// name: Type = default, live | restart | toggle, range;
/// ```
///
/// Fields under `with` are not set by operators, and begin as their default.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        struct $Name:ident in $section:ident;
        $($heading:literal {
            $($(#[doc = $help:literal])+
            $field:ident: $T:ty = $default:expr, $change:ident $(, $range:expr)?;)+
        })+
        $(with { $($(#[doc = $doc:literal])+ $extra:ident: $E:ty;)+ })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $Name {
            $($($(#[doc = $help])+ pub(crate) $field: $T,)+)+
            $($($(#[doc = $doc])+ pub(crate) $extra: $E,)+)?
        }

        impl $Name {
            /// All settings of the table. Those of `off` are off by default.
            pub(in crate::settings) fn declarations(
                off: &[&str],
            ) -> Vec<$crate::settings::declare::Declaration> {
                use $crate::settings::declare::{Section, Spec};
                vec![$($({
                    let spec: Spec<$T> = Spec {
                        section: Section::$section,
                        key: key!($field),
                        default: $default,
                        range: None$(.or(Some($range)))?,
                    };
                    spec.declaration($heading, &[$($help),+], stringify!($change), off)
                },)+)+]
            }

            /// The values, from wherever they are set.
            pub(in crate::settings) fn resolve(
                sources: &mut $crate::settings::declare::Sources<'_>,
                mut table: Option<&mut spillgate_policy::Settings<'_, '_>>,
            ) -> Self {
                use $crate::settings::declare::{Section, Spec};
                Self {
                    $($($field: {
                        let spec: Spec<$T> = Spec {
                            section: Section::$section,
                            key: key!($field),
                            default: $default,
                            range: None$(.or(Some($range)))?,
                        };
                        sources.value(spec, table.as_deref_mut())
                    },)+)+
                    $($($extra: Default::default(),)+)?
                }
            }

            /// The settings that have another value in `new`.
            pub(in crate::settings) fn own_changes(
                &self,
                new: &Self,
            ) -> Vec<$crate::settings::declare::SettingChange> {
                use $crate::settings::declare::{Section, SettingChange, change};
                let mut changes = Vec::new();
                $($(if self.$field != new.$field {
                    let values = (&self.$field, &new.$field);
                    let needs_restart = change::$change(values.0, values.1);
                    let place = (Section::$section, key!($field));
                    changes.push(SettingChange::new(place, values, needs_restart));
                })+)+
                changes
            }

            /// The same if their file were in another folder.
            pub(in crate::settings) fn moved(
                &self,
                from: &std::path::Path,
                to: &std::path::Path,
            ) -> Self {
                use $crate::settings::value::Value;
                let mut moved = self.clone();
                $($(moved.$field = Value::moved(moved.$field, from, to);)+)+
                moved
            }
        }
    };
}

pub(super) use {key, settings};
