//! `hqueue completions`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::table;

/// Print what makes bash, zsh or fish complete commands and flags.
///
/// bash: source <(hqueue completions bash), in ~/.bashrc. zsh: hqueue completions zsh > _hqueue, in a folder of $fpath.
/// fish: hqueue completions fish > ~/.config/fish/completions/hqueue.fish.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    #[arg(value_enum)]
    shell: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let shell = match self.shell {
            Kind::Bash => Shell::Bash,
            Kind::Zsh => Shell::Zsh,
            Kind::Fish => Shell::Fish,
        };
        // The library panics when it cannot write: not to memory.
        let mut script = Vec::new();
        generate(shell, &mut table::command_line(), "hqueue", &mut script);
        Ok(io::stdout().lock().write_all(&script)?)
    }
}
