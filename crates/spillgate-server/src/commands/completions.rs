use std::error::Error;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::{Arguments, print};

/// Print a shell completion script
///
///   spillgate completions bash > ~/.local/share/bash-completion/completions/spillgate
///   spillgate completions zsh > ~/.zfunc/_spillgate
///   spillgate completions fish > ~/.config/fish/completions/spillgate.fish
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Completions {
    /// Shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> Result<(), Box<dyn Error>> {
        let mut script = Vec::new();
        generate(self.shell, &mut Arguments::command(), "spillgate", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
