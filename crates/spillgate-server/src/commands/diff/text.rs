//! What changes, for people.

use std::fmt::Write;

use spillgate_policy::{
    AffectedLimit, Changes, Effect, EntryChange, EntryChangeKind, LimitChange, Mode,
};

use crate::commands::escape::shown;
use crate::commands::style::{Colour, Style};
use crate::settings::SettingChange;

pub(super) struct Report<'c> {
    pub(super) names: [String; 2],
    pub(super) policy: &'c Changes,
    pub(super) settings: &'c [SettingChange],
}

impl Report<'_> {
    pub(super) fn text(&self, style: Style) -> String {
        let [old, new] = &self.names;
        if self.policy.is_empty() && self.settings.is_empty() {
            return format!("{} and {}: no difference\n", shown(old), shown(new));
        }
        let mut page = Page { text: String::new(), style };
        page.identity(self.policy);
        page.limits(self.policy);
        page.lists(self.policy);
        page.others(self.policy);
        page.settings(self.settings);
        let summary = summary(self.policy, self.settings);
        format!("{} → {}\n{}\n{summary}\n", shown(old), shown(new), page.text)
    }
}

struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn line(&mut self, indent: usize, colour: Option<Colour>, text: &str) {
        let text = match colour {
            Some(colour) => self.style.paint(colour, text),
            None => shown(text),
        };
        // Writing to a text cannot fail.
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    fn heading(&mut self, colour: Colour, text: &str) {
        self.text.push('\n');
        self.line(0, Some(colour), text);
    }

    /// Who is who comes first: it changes what everything else means.
    fn identity(&mut self, policy: &Changes) {
        let changes = || policy.others.iter().filter(|change| change.is_of_identity());
        if changes().next().is_none() {
            return;
        }
        self.heading(Colour::Red, "! IDENTITY: callers may be taken for others than before");
        for change in changes() {
            self.line(2, Some(Colour::Yellow), &format!("~ {change}"));
            self.entries(&change.entries);
        }
        if !policy.by_identity.is_empty() {
            let limits = policy.by_identity.join(", ");
            self.line(2, None, &format!("! who has another name now starts afresh under {limits}"));
        }
    }

    fn limits(&mut self, policy: &Changes) {
        if policy.affected.is_empty() {
            return;
        }
        self.heading(Colour::Bold, "LIMITS");
        for affected in &policy.affected {
            let AffectedLimit { limit, who, quota, mode, .. } = affected;
            let mode = if *mode == Mode::Shadow { ", shadow: refuses nobody" } else { "" };
            if policy.added.contains(limit) {
                let text = format!("+ {limit}: {quota} for {who}{mode}");
                self.line(2, Some(Colour::Green), &text);
            } else if policy.removed.contains(limit) {
                let text = format!("- {limit}: was {quota} for {who}{mode}");
                self.line(2, Some(Colour::Red), &text);
            } else {
                self.line(2, Some(Colour::Yellow), &format!("~ {limit}: for {who}{mode}"));
                self.changed(limit, policy);
            }
        }
    }

    fn changed(&mut self, limit: &str, policy: &Changes) {
        for change in policy.changed.iter().filter(|change| change.limit == limit) {
            let LimitChange { key, from, to, effect, who, .. } = change;
            let (sign, effect) = match effect {
                Effect::Stricter => ("▼", ", stricter"),
                Effect::Looser => ("▲", ", looser"),
                _ => ("•", ""),
            };
            let who = who.as_ref().map(|who| format!(" for {who}")).unwrap_or_default();
            self.line(6, None, &format!("{sign} {key}: {from} → {to}{who}{effect}"));
        }
        match policy.restarted.iter().any(|restarted| restarted == limit) {
            true => self.line(6, Some(Colour::Red), "! every caller starts afresh"),
            false => self.line(6, None, "= callers keep what they have spent"),
        }
    }

    fn lists(&mut self, policy: &Changes) {
        if policy.lists.is_empty() {
            return;
        }
        self.heading(Colour::Bold, "LISTS");
        for change in &policy.lists {
            self.line(2, Some(Colour::Yellow), &format!("~ {change}"));
            self.entries(&change.entries);
            let more = change.added + change.removed + change.changed - change.entries.len();
            if more > 0 {
                self.line(6, None, &format!("and {more} more"));
            }
        }
    }

    fn others(&mut self, policy: &Changes) {
        let changes = || policy.others.iter().filter(|change| !change.is_of_identity());
        if changes().next().is_none() {
            return;
        }
        self.heading(Colour::Bold, "POLICY");
        for change in changes() {
            self.line(2, Some(Colour::Yellow), &format!("~ {change}"));
            self.entries(&change.entries);
        }
    }

    fn entries(&mut self, entries: &[EntryChange]) {
        for entry in entries {
            let colour = match entry.change {
                EntryChangeKind::Added => Colour::Green,
                EntryChangeKind::Removed => Colour::Red,
                EntryChangeKind::Changed => Colour::Yellow,
            };
            self.line(6, Some(colour), &entry.to_string());
        }
    }

    fn settings(&mut self, settings: &[SettingChange]) {
        let parts = [
            (false, "~", Colour::Yellow, "SETTINGS that a reload applies"),
            (true, "!", Colour::Red, "SETTINGS that need a restart"),
        ];
        for (needs_restart, sign, colour, heading) in parts {
            let changes = || settings.iter().filter(|it| it.needs_restart == needs_restart);
            if changes().next().is_none() {
                continue;
            }
            self.heading(Colour::Bold, heading);
            for change in changes() {
                let values = match &change.values {
                    Some([from, to]) => format!("{from} → {to}"),
                    None => "another secret".to_owned(),
                };
                self.line(2, Some(colour), &format!("{sign} {change}: {values}"));
            }
        }
    }
}

/// `1 limit added, 2 changed, callers start afresh under 1 of them; 1 setting needs a restart`.
fn summary(policy: &Changes, settings: &[SettingChange]) -> String {
    let changed = policy.affected.len() - policy.added.len() - policy.removed.len();
    let counts =
        [(policy.added.len(), "added"), (policy.removed.len(), "removed"), (changed, "changed")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut limits: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    if limits.is_empty() {
        limits.push("none changed".to_owned());
    }
    if !policy.restarted.is_empty() {
        limits.push(format!("callers start afresh under {}", policy.restarted.len()));
    }
    let restart = match settings.iter().filter(|change| change.needs_restart).count() {
        0 => String::new(),
        1 => "; 1 setting needs a restart".to_owned(),
        count => format!("; {count} settings need a restart"),
    };
    format!("limits: {}{restart}", limits.join(", "))
}
