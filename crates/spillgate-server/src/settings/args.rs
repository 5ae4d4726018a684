//! The flags of commands.

use std::fmt;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::declare::{Declaration, Section};
use super::{ProxySettings, Settings, StoreSettings};

/// Listeners that a proxy does not have by default.
pub(super) const OFF_IN_PROXY: &[&str] = &["resp", "grpc"];

/// Flags and environment variables of `[server]`, `[store]` and, for `spillgate proxy`, `[proxy]`.
#[derive(Clone, Default)]
pub(crate) struct Flags<const PROXY: bool>(pub(super) ArgMatches);

/// All settings. Those of `off` are off by default.
pub(super) fn declarations(off: &[&str]) -> impl Iterator<Item = Declaration> {
    let (server, store) = (Settings::declarations(off), StoreSettings::declarations(off));
    ProxySettings::declarations(off).into_iter().chain(server).chain(store)
}

impl<const PROXY: bool> Args for Flags<PROXY> {
    fn augment_args(command: Command) -> Command {
        let off = if PROXY { OFF_IN_PROXY } else { &[] };
        let own = declarations(off).filter(|setting| PROXY || setting.section != Section::Proxy);
        command.args(own.map(|setting| setting.arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const PROXY: bool> FromArgMatches for Flags<PROXY> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

/// Flags may hold secrets, so they are not shown.
impl<const PROXY: bool> fmt::Debug for Flags<PROXY> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flags")
    }
}

#[cfg(test)]
mod tests {
    use super::super::declare::Row;
    use super::*;

    /// The rows of the table of settings of a page: key, default, range, reload.
    fn rows(page: &str) -> Vec<Row> {
        let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(path).unwrap();
        let section = page.split("\n## All settings\n").nth(1).unwrap();
        let rows = section.split("\n## ").next().unwrap().lines();
        let rows = rows.filter(|row| row.starts_with("| `"));
        let cell = |cell: &str| cell.trim().trim_matches('`').to_owned();
        rows.map(|row| {
            let cells: Vec<_> = row.split('|').map(cell).collect();
            std::array::from_fn(|at| cells[at + 1].clone())
        })
        .collect()
    }

    #[test]
    fn the_documentation_has_every_setting_with_default_range_and_reload() {
        for (section, page) in [
            (Section::Server, "server.md"),
            (Section::Store, "cluster.md"),
            (Section::Proxy, "proxy.md"),
        ] {
            let documented = rows(page);
            let declared = declarations(&[]).filter(|setting| setting.section == section);
            let declared: Vec<_> = declared.map(|setting| setting.row).collect();
            let keys = |rows: &[Row]| rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
            assert_eq!(keys(&documented), keys(&declared), "{page}");
            for (shown, right) in documented.iter().zip(&declared) {
                let is_default = right[1].is_empty() || shown[1] == right[1];
                assert!(is_default, "{page}: {right:?}, not {shown:?}");
                assert_eq!(shown[2..], right[2..], "{page}: {}", right[0]);
            }
        }
    }
}
