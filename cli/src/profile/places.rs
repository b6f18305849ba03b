//! The source lines of the kernels in a table.
//!
//! In: rows of kernels with their operators, and the spec that declares these. Out: a line for each kernel with file and line.

use std::path::Path;

use anyhow::Result;
use opsmith_codegen::pipeline;
use opsmith_profile::AveragesRow;
use opsmith_tools::describe::{Shared, describe_with};

use crate::operator::find;
use crate::project::BuildsOn;

/// The places of the kernels of rows; of a loop made from an expression, that of the entry.
///
/// # Errors
/// If the spec cannot be read.
pub fn of_kernels(spec: &Path, builds_on: &BuildsOn, rows: &[AveragesRow]) -> Result<String> {
    let config = builds_on.config(spec)?;
    let checked = pipeline::check(&config)?;
    let mut shared = Shared::new(&checked, &config);
    let mut text = String::new();
    for row in rows {
        let place = match find(&checked, &row.detail) {
            Ok(ops) => {
                let operator = describe_with(&checked, ops[0], &mut shared);
                let kernel = operator.kernels.into_iter().find(|kernel| kernel.text == row.name);
                kernel.and_then(|kernel| kernel.source).unwrap_or(operator.declared)
            }
            Err(_) => format!("not in {}", spec.display()),
        };
        text += &format!("{} of {}: {place}\n", row.name, row.detail);
    }
    Ok(text)
}
