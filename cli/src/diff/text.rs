//! A report as text.

use std::io::{self, Write};

use opsmith_tools::diff::{self, Change, Class, Report, Version};

use crate::style::Styled;

const CLASSES: [Class; 3] = [Class::Breaking, Class::Additive, Class::Internal];

/// A class in a word.
pub fn word(class: Class) -> &'static str {
    match class {
        Class::Breaking => "breaking",
        Class::Additive => "additive",
        Class::Internal => "internal",
    }
}

/// For people at a terminal.
pub fn terminal(
    out: &mut dyn Write,
    report: &Report,
    version: Option<Version>,
    style: Styled,
) -> io::Result<()> {
    for class in CLASSES {
        let changes: Vec<&Change> = report.of(class).collect();
        if changes.is_empty() {
            continue;
        }
        writeln!(out, "{}", style.heading(word(class)))?;
        for Change { name, what, rule, migration, .. } in changes {
            writeln!(out, "  {}: {what} [{rule}]", style.title(name))?;
            if let Some(migration) = migration {
                writeln!(out, "    instead: {migration}")?;
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", verdict(report, version))
}

/// For comments and release notes.
pub fn markdown(out: &mut dyn Write, report: &Report, version: Option<Version>) -> io::Result<()> {
    for class in CLASSES {
        let changes: Vec<&Change> = report.of(class).collect();
        if changes.is_empty() {
            continue;
        }
        let title = word(class);
        writeln!(out, "## {}{}\n", title[..1].to_uppercase(), &title[1..])?;
        for Change { name, what, rule, migration, .. } in changes {
            writeln!(out, "- `{name}`: {what} ({rule})")?;
            if let Some(migration) = migration {
                writeln!(out, "  - Instead: {migration}.")?;
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{}", verdict(report, version))
}

/// The number of changes of each class, and the resulting version.
fn verdict(report: &Report, version: Option<Version>) -> String {
    if report.changes.is_empty() {
        return "nothing changed".to_owned();
    }
    let counts: Vec<String> = CLASSES
        .iter()
        .map(|class| (report.of(*class).count(), word(*class)))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let next =
        version.map(|version| format!("; after {version} comes {}", diff::next(version, report.worst())));
    format!("{}{}", counts.join(", "), next.unwrap_or_default())
}
