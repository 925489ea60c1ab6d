//! Asks before something is destroyed.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use crate::failure::Failure;

/// The flag of commands that destroy.
#[derive(Args, Debug)]
pub(crate) struct Confirm {
    /// Do not ask. Needed where there is no terminal to ask on.
    #[arg(long)]
    yes: bool,
}

impl Confirm {
    /// Says what will be done, and asks for a yes.
    pub(crate) fn ask(&self, what: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(Failure::Usage(format!("this {what}; say --yes if that is meant")));
        }
        let mut err = io::stderr().lock();
        write!(err, "This {what}.\nGo on? Type yes: ")?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).map_err(Failure::failed)?;
        if answer.trim() == "yes" { Ok(()) } else { Err(Failure::failed("nothing was done")) }
    }
}
