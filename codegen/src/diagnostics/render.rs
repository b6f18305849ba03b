//! Draws diagnostics the way rustc does: headline, place, underlined source, help.

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Renderer, Snippet, normalize_untrusted_str,
};

use super::{Diagnostic, Diagnostics, Label, Severity, SourceFile, SourceId, SourceMap};

/// The text of one diagnostic, without a final line break.
pub fn render(sources: &SourceMap, diagnostic: &Diagnostic, color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    // Messages quote the spec, which may hold control characters.
    let title = level.primary_title(normalize_untrusted_str(&diagnostic.message)).id(diagnostic.code);
    let mut group = Group::with_title(title);
    for source in files_in_order(diagnostic) {
        group = group.element(snippet(sources.file(source), source, diagnostic));
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(normalize_untrusted_str(note)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// How many problems there are, such as `3 errors, 1 warning`; empty if there are none.
pub fn summary(diagnostics: &Diagnostics) -> String {
    let plural = |count: usize, noun: &str| match count {
        0 => None,
        1 => Some(format!("1 {noun}")),
        _ => Some(format!("{count} {noun}s")),
    };
    let more = diagnostics.is_full().then(|| "and no more were looked for".to_owned());
    [plural(diagnostics.error_count(), "error"), plural(diagnostics.warning_count(), "warning"), more]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// The file to change first, then the others it mentions.
fn files_in_order(diagnostic: &Diagnostic) -> Vec<SourceId> {
    let mut files = vec![diagnostic.primary.span.source];
    for label in &diagnostic.secondary {
        if !files.contains(&label.span.source) {
            files.push(label.span.source);
        }
    }
    files
}

/// The underlined lines of one file. Only the lines from the first label to the last are handed to
/// the renderer, whose time grows with the text it is given.
fn snippet<'a>(
    file: &'a SourceFile,
    source: SourceId,
    diagnostic: &'a Diagnostic,
) -> Snippet<'a, Annotation<'a>> {
    let primary = (&diagnostic.primary, AnnotationKind::Primary);
    let secondary = diagnostic.secondary.iter().map(|label| (label, AnnotationKind::Context));
    let labels: Vec<(&Label, AnnotationKind)> =
        std::iter::once(primary).chain(secondary).filter(|(label, _)| label.span.source == source).collect();

    let line_of = |offset: u32| file.line_index(offset as usize);
    let first = labels.iter().map(|(label, _)| line_of(label.span.start)).min().unwrap_or(0);
    let last = labels.iter().map(|(label, _)| line_of(label.span.end)).max().unwrap_or(first);
    let window = file.lines(first, last);

    let annotations = labels.into_iter().map(|(label, kind)| {
        let place = |offset: u32| {
            let offset = (offset as usize).clamp(window.start, window.end);
            file.text().floor_char_boundary(offset) - window.start
        };
        let annotation = kind.span(place(label.span.start)..place(label.span.end));
        match label.text.as_str() {
            "" => annotation,
            text => annotation.label(normalize_untrusted_str(text)),
        }
    });
    Snippet::source(&file.text()[window.clone()])
        .path(file.path())
        .line_start(first + 1)
        .annotations(annotations.collect::<Vec<_>>())
}
