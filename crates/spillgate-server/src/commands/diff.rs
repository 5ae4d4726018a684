use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use spillgate_policy::{Changes, Gate};

use self::text::Report;
use super::print;
use super::style::Style;
use crate::settings::{Flags, SettingChange, Source};

mod text;

/// Show what a reload would change, and for whom
///
/// Compares two configuration files as a server reads them that runs with OLD and is reloaded with
/// NEW: which limits are added, removed, stricter or looser and for whom, whether callers keep what
/// they have spent, who is taken for somebody else, and which settings need a restart. Nothing is
/// started or changed, and secrets are shown as fingerprints:
///
///   spillgate diff spillgate.toml new.toml
///   git show main:spillgate.toml > old.toml && spillgate diff old.toml spillgate.toml
///
/// Either can be a directory of envoyproxy/ratelimit files, or one of them:
///
///   spillgate diff /etc/ratelimit ratelimit.new
///
/// The exit code is 0 if there is no difference, 1 if there is one, and 2 if a file is invalid.
/// Flags and environment variables have the same effect as for serve, on both sides. What a new
/// policy would have done to past requests is shown by spillgate replay --compare.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Diff {
    /// Configuration in force
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// Configuration to compare with it
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags<false>,
}

/// The exit code of a comparison that failed, as of diff(1).
pub(super) const FAILURE: u8 = 2;

impl Diff {
    pub(super) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let names = [&self.old, &self.new].map(|path| path.display().to_string());
        let old = Source::file_or_rules(self.old, self.flags.clone());
        let new = Source::file_or_rules(self.new, self.flags);
        let (config, policy) = old.load(None)?;
        let (new_config, new_policy) = new.load(Some(&config.settings))?;
        // By a gate, as in a server, which may still refuse what can be read.
        let policy = Gate::new(policy)?.replace(new_policy)?;
        let folders = (old.folder(), new.folder());
        let settings = config.settings.changes_in_place(&new_config.settings, folders);
        print(&match self.json {
            true => json_text(&names, &policy, &settings)?,
            false => Report { names, policy: &policy, settings: &settings }.text(Style::detect()),
        })?;
        let is_same = policy.is_empty() && settings.is_empty();
        Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn json_text(
    [old, new]: &[String; 2],
    policy: &Changes,
    settings: &[SettingChange],
) -> Result<String, serde_json::Error> {
    let setting = |change: &SettingChange| {
        let values = change.values.as_ref();
        json!({
            "setting": change.to_string(),
            "from": values.map(|values| &values[0]),
            "to": values.map(|values| &values[1]),
            "needs_restart": change.needs_restart,
        })
    };
    let settings: Vec<_> = settings.iter().map(setting).collect();
    let document = json!({ "old": old, "new": new, "policy": policy, "settings": settings });
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}
