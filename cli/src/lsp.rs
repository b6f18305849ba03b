//! `opsmith lsp`: a language server for specs.
//!
//! In: messages of the language server protocol on the standard input. Out: answers on the standard output, and the
//! mistakes in every file of a spec, after each change. The features are in `opsmith_tools::editor`; the folder has the
//! protocol: `transport` reads and writes messages, `documents` has the texts, `specs` the checks, `server` the loop,
//! `requests` the answers.

mod convert;
mod documents;
mod paths;
mod position;
mod publish;
mod requests;
mod roots;
mod server;
mod specs;
mod transport;

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Result, bail};

use crate::Outcome;
use crate::project::BuildsOn;

/// Answers an editor's questions about specs (language server protocol)
#[derive(clap::Args)]
#[command(after_help = "\
The server reads the protocol's messages from the standard input and writes to the standard output. An editor
starts it; docs/editor.md has settings for VS Code, Neovim, Helix, Emacs and Zed.

Examples:
  opsmith lsp
      Mistakes while you type, completion, documentation, definitions, references, renaming, formatting.
  opsmith lsp --stand-alone
      Formulas may call no operators but the spec's own, and cargo is not asked for other crates.

Exit status: 0 after the message `exit` that follows `shutdown`, 2 if the connection ended otherwise.")]
pub struct Arguments {
    #[command(flatten)]
    builds_on: BuildsOn,
    /// Given by some editors; the server uses no other channel
    #[arg(long, hide = true)]
    stdio: bool,
}

/// The result of some work, or `None` after a panic, whose message is on the standard error, the editor's log.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    // Some editors start every server with `--stdio`, which changes nothing.
    let _ = arguments.stdio;
    match server::Server::new(&arguments.builds_on).serve()? {
        server::End::Orderly => Ok(Outcome::Fine),
        server::End::Abrupt => bail!("the editor ended the connection without `shutdown` and `exit`"),
    }
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_ends_only_its_own_work() {
        assert_eq!(guarded(|| 1), Some(1));
        assert_eq!(guarded(|| -> i32 { panic!("a defect") }), None);
    }
}
