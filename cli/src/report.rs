//! Diagnostics in formats for terminals, editors and services.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use opsmith_codegen::diagnostics::{Diagnostic, Label, Severity, SourceMap, render};
use opsmith_codegen::pipeline::Checked;
use serde_json::{Value, json};

/// How diagnostics are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// With the source, underlined, and a hint
    Text,
    /// One line each: `ops.yaml:12:5: error[E0301]: …`
    Short,
    /// One JSON object a line
    Json,
    /// Commands that GitHub shows beside the changed lines
    Github,
}

/// When text is coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Color {
    /// On a terminal, unless the variable NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Whether to colour text on the standard output.
    pub fn on_stdout(self) -> bool {
        self.on(io::stdout().is_terminal())
    }

    /// Whether to colour text on the standard error.
    pub fn on_stderr(self) -> bool {
        self.on(io::stderr().is_terminal())
    }

    fn on(self, is_terminal: bool) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                is_terminal && !refused
            }
        }
    }
}

/// Prints the errors of a checked spec for a command that needs one without; whether there are any.
pub fn refuse_mistakes(checked: &Checked, format: Format, color: bool) -> io::Result<bool> {
    let mut err = io::stderr().lock();
    for error in checked.diagnostics.sorted().filter(|diagnostic| diagnostic.severity == Severity::Error) {
        write(&mut err, &checked.sources, error, format, color)?;
    }
    Ok(checked.diagnostics.has_errors())
}

/// Prints one diagnostic.
pub fn write(
    out: &mut dyn Write,
    sources: &SourceMap,
    diagnostic: &Diagnostic,
    format: Format,
    color: bool,
) -> io::Result<()> {
    match format {
        Format::Text => writeln!(out, "{}\n", render(sources, diagnostic, color)),
        Format::Short => writeln!(
            out,
            "{}: {}[{}]: {}",
            sources.location(diagnostic.primary.span),
            severity(diagnostic),
            diagnostic.code,
            visible(&diagnostic.message)
        ),
        Format::Json => writeln!(out, "{}", object(sources, diagnostic)),
        Format::Github => writeln!(out, "{}", workflow_command(sources, diagnostic)),
    }
}

fn severity(diagnostic: &Diagnostic) -> &'static str {
    match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Messages quote the spec, which may contain control characters that a terminal would interpret.
fn visible(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// A span as lines and columns, all from 1, columns in characters; the end is exclusive.
struct Place {
    file: String,
    start: (usize, usize),
    end: (usize, usize),
}

fn place(sources: &SourceMap, label: &Label) -> Place {
    let file = sources.file(label.span.source);
    Place {
        file: file.path().to_owned(),
        start: file.line_column(label.span.start as usize),
        end: file.line_column(label.span.end as usize),
    }
}

fn object(sources: &SourceMap, diagnostic: &Diagnostic) -> Value {
    let labelled = |label: &Label| {
        let Place { file, start, end } = place(sources, label);
        let text = sources.file(label.span.source);
        let utf16 = |offset: u32| text.utf16_column(offset as usize);
        json!({
            "file": file, "line": start.0, "column": start.1, "end_line": end.0, "end_column": end.1,
            "utf16_column": utf16(label.span.start), "utf16_end_column": utf16(label.span.end),
            "byte_start": label.span.start, "byte_end": label.span.end, "label": label.text,
        })
    };
    let mut value = labelled(&diagnostic.primary);
    value["severity"] = severity(diagnostic).into();
    value["code"] = diagnostic.code.into();
    value["message"] = diagnostic.message.clone().into();
    value["help"] = diagnostic.help.as_ref().map(|help| help.text.clone()).into();
    value["notes"] = diagnostic.notes.clone().into();
    value["related"] = diagnostic.secondary.iter().map(labelled).collect();
    value
}

/// `::error file=ops.yaml,line=12,…::message`
fn workflow_command(sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    let Place { file, start, end } = place(sources, &diagnostic.primary);
    let mut text = format!("{}\n{}", diagnostic.message, diagnostic.primary.text);
    for (kind, line) in diagnostic
        .notes
        .iter()
        .map(|note| ("note", note))
        .chain(diagnostic.help.iter().map(|help| ("help", &help.text)))
    {
        text.push_str(&format!("\n{kind}: {line}"));
    }
    format!(
        "::{} file={},line={},col={},endLine={},endColumn={},title={}::{}",
        severity(diagnostic),
        escaped(&file).replace(',', "%2C").replace(':', "%3A"),
        start.0,
        start.1,
        end.0,
        end.1,
        diagnostic.code,
        escaped(&text)
    )
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
