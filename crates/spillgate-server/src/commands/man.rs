use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use super::{Arguments, print};

/// Print a manual page, or write all of them
///
///   spillgate man | man -l -
///   spillgate man serve | man -l -
///   spillgate man --dir /usr/local/share/man/man1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Man {
    /// Subcommand; the program itself if absent
    command: Vec<String>,
    /// Write the pages of the program and all subcommands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(self) -> Result<(), Box<dyn Error>> {
        let pages = pages()?;
        if let Some(dir) = self.dir {
            let unwritable = |path: &PathBuf, error: io::Error| {
                format!("{} cannot be written: {error}", path.display())
            };
            std::fs::create_dir_all(&dir).map_err(|error| unwritable(&dir, error))?;
            for (name, page) in pages {
                let path = dir.join(format!("{name}.1"));
                std::fs::write(&path, page).map_err(|error| unwritable(&path, error))?;
            }
            return Ok(());
        }
        let names = std::iter::once("spillgate").chain(self.command.iter().map(String::as_str));
        let name = names.collect::<Vec<_>>().join("-");
        let page = pages.get(&name).ok_or_else(|| {
            let known: Vec<_> = pages.keys().map(String::as_str).collect();
            format!("there is no page {name}; there are {}", known.join(", "))
        })?;
        print(page)
    }
}

/// The page of every command by its name: `spillgate-check-config`.
fn pages() -> io::Result<BTreeMap<String, String>> {
    // Clap's own subcommand says nothing that the pages do not say.
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    let mut pages = BTreeMap::new();
    add(&program, "spillgate", &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, name: &str, pages: &mut BTreeMap<String, String>) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    pages.insert(name.to_owned(), page(command, name)?);
    Ok(())
}

fn page(command: &Command, name: &str) -> io::Result<String> {
    let version = env!("CARGO_PKG_VERSION");
    let below: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
    let page = Page::new(command.clone().name(name.to_owned()).display_name(name.to_owned()))
        .title(name.to_uppercase())
        // An empty one would be left out, and what follows taken for it.
        .date(" ")
        .source(format!("spillgate {version}"))
        .manual("Spillgate Manual");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    description(command).to_writer(&mut text)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        page.render_options_section(&mut text)?;
    }
    if !below.is_empty() {
        page.render_subcommands_section(&mut text)?;
    }
    sections(command, name).to_writer(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The help's text. Lines that are indented are examples, and stay as they are.
fn description(command: &Command) -> Roff {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    roff.control("SH", ["DESCRIPTION"]);
    let mut is_example = false;
    for line in about.lines() {
        let indented = line.starts_with("  ");
        match (indented, is_example) {
            (true, false) => drop(roff.control("PP", []).control("RS", ["4"]).control("nf", [])),
            (false, true) => drop(roff.control("fi", []).control("RE", [])),
            _ => {}
        }
        is_example = indented;
        match line.trim() {
            "" => roff.control("PP", []),
            text => roff.text([roman(text)]),
        };
    }
    if is_example {
        roff.control("fi", []).control("RE", []);
    }
    roff
}

fn sections(command: &Command, name: &str) -> Roff {
    let mut roff = Roff::new();
    let variables: Vec<_> = command
        .get_arguments()
        .filter_map(|arg| Some((arg.get_env()?.to_str()?, arg.get_long()?)))
        .collect();
    if !variables.is_empty() {
        roff.control("SH", ["ENVIRONMENT"]);
        for (variable, flag) in variables {
            item(&mut roff, variable, &format!("The same as --{flag}, which takes precedence."));
        }
    }
    let runs = ["spillgate-serve", "spillgate-proxy", "spillgate-check-config", "spillgate-diff"];
    if runs.contains(&name) {
        roff.control("SH", ["FILES"]);
        let text = "The configuration file of the systemd unit. Any other can be named.";
        item(&mut roff, "/etc/spillgate/spillgate.toml", text);
    }
    roff.control("SH", ["EXIT STATUS"]);
    let statuses: &[(&str, &str)] = match name {
        "spillgate-diff" => &[
            ("0", "There is no difference."),
            ("1", "There is a difference."),
            ("2", "A file is invalid or cannot be read, or the arguments are wrong."),
        ],
        _ => &[
            ("0", "Success."),
            ("1", "It failed; standard error says why."),
            ("2", "The arguments are wrong."),
        ],
    };
    statuses.iter().for_each(|(status, text)| item(&mut roff, status, text));
    roff.control("SH", ["SEE ALSO"]);
    let others = Arguments::command();
    let others = others.get_subcommands().map(|it| format!("spillgate-{}", it.get_name()));
    let others = std::iter::once("spillgate".to_owned()).chain(others);
    let others: Vec<_> =
        others.filter(|other| other != name).map(|it| format!("{it}(1)")).collect();
    roff.text([roman(others.join(", "))]);
    roff
}

fn item(roff: &mut Roff, term: &str, text: &str) {
    let term: Inline = bold(term);
    roff.control("TP", []).text([term]).text([roman(text)]);
}
