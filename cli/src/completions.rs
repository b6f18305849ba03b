//! `opsmith completions`: completion scripts for shells.

use std::io;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::Outcome;

/// Writes the completions of a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith completions bash > ~/.local/share/bash-completion/completions/opsmith
  opsmith completions zsh > ~/.zfunc/_opsmith
  opsmith completions fish > ~/.config/fish/completions/opsmith.fish")]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    // Written at once: a reader that ends early, such as `head`, is then no failure.
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "opsmith", &mut text);
    io::Write::write_all(&mut io::stdout().lock(), &text)?;
    Ok(Outcome::Fine)
}
