//! Runs the command as a user does.

use std::path::Path;
use std::process::Command;

/// The output of a run, and its exit status.
pub struct Run {
    pub stdout: String,
    pub stderr: String,
    pub status: Option<i32>,
}

/// Runs `opsmith` in the root of the workspace.
pub fn opsmith(arguments: &[&str]) -> Run {
    opsmith_with(&[], arguments)
}

/// As [`opsmith`], with environment variables.
pub fn opsmith_with(variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the workspace");
    let output = Command::new(env!("CARGO_BIN_EXE_opsmith"))
        .args(arguments)
        .current_dir(root)
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .output()
        .expect("the command was just built");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the command writes UTF-8");
    Run { stdout: text(output.stdout), stderr: text(output.stderr), status: output.status.code() }
}

impl Run {
    /// Asserts the status and the whole output of the run.
    #[track_caller]
    pub fn assert(&self, status: i32, stdout: &str, stderr: &str) {
        assert_eq!((&*self.stdout, &*self.stderr, self.status), (stdout, stderr, Some(status)));
    }

    /// Asserts that the standard output has these parts in this order.
    #[track_caller]
    pub fn assert_parts(&self, parts: &[&str]) {
        let mut rest = &*self.stdout;
        for part in parts {
            let Some(position) = rest.find(part) else {
                panic!("`{part}` is missing or out of order in\n{}{}", self.stdout, self.stderr);
            };
            rest = &rest[position + part.len()..];
        }
    }
}
