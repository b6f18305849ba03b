//! Draws diagnostics in the style of rustc: headline, location, underlined source, help.

use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
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
    for cluster in clusters(sources, diagnostic) {
        group = cluster.draw(sources, group);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(normalize_untrusted_str(note)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(normalize_untrusted_str(&help.text)));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// The number of problems, such as `3 errors, 1 warning`; empty if there are none.
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

/// Maximal distance in lines of labels in one picture.
const MAX_GAP: usize = 40;
/// Maximal length of drawn source in bytes; beyond it only the location is shown.
const MAX_WINDOW: usize = 64 << 10;

/// Labels on neighbouring lines of one file. Only those lines are passed to the renderer, whose time grows with the
/// length of the text.
struct Cluster<'a> {
    source: SourceId,
    /// The first and the last line, from 0.
    lines: (usize, usize),
    labels: Vec<(&'a Label, AnnotationKind)>,
}

/// The pictures of a diagnostic, the one with the span to change first, the others in the file's order.
fn clusters<'a>(sources: &SourceMap, diagnostic: &'a Diagnostic) -> Vec<Cluster<'a>> {
    let primary = (&diagnostic.primary, AnnotationKind::Primary);
    let secondary = diagnostic.secondary.iter().map(|label| (label, AnnotationKind::Context));
    let mut labels: Vec<_> = std::iter::once(primary).chain(secondary).collect();
    labels.sort_by_key(|(label, _)| label.span);

    let mut clusters: Vec<Cluster> = Vec::new();
    for (label, kind) in labels {
        let file = sources.file(label.span.source);
        let first = file.line_index(label.span.start as usize);
        let last = file.line_index(label.span.end as usize);
        match clusters.last_mut() {
            Some(cluster) if cluster.source == label.span.source && first <= cluster.lines.1 + MAX_GAP => {
                cluster.lines.1 = cluster.lines.1.max(last);
                cluster.labels.push((label, kind));
            }
            _ => clusters.push(Cluster {
                source: label.span.source,
                lines: (first, last),
                labels: vec![(label, kind)],
            }),
        }
    }
    clusters.sort_by_key(|cluster| !cluster.labels.iter().any(|(_, kind)| *kind == AnnotationKind::Primary));
    clusters
}

impl<'a> Cluster<'a> {
    fn draw(self, sources: &'a SourceMap, group: Group<'a>) -> Group<'a> {
        let file = sources.file(self.source);
        let window = file.lines(self.lines.0, self.lines.1);
        if window.len() > MAX_WINDOW {
            let start = self.labels.first().map_or(0, |(label, _)| label.span.start as usize);
            let (line, column) = file.line_column(start);
            return group.element(Origin::path(file.path()).line(line).char_column(column));
        }
        let annotations: Vec<Annotation> = self
            .labels
            .into_iter()
            .map(|(label, kind)| {
                let annotation = kind.span(place(file, label, &window));
                match label.text.as_str() {
                    "" => annotation,
                    text => annotation.label(normalize_untrusted_str(text)),
                }
            })
            .collect();
        let snippet = Snippet::source(&file.text()[window])
            .path(file.path())
            .line_start(self.lines.0 + 1)
            .annotations(annotations);
        group.element(snippet)
    }
}

/// A label's bytes within the drawn lines.
fn place(file: &SourceFile, label: &Label, window: &Range<usize>) -> Range<usize> {
    let offset = |offset: u32| {
        let offset = (offset as usize).clamp(window.start, window.end);
        file.text().floor_char_boundary(offset) - window.start
    };
    offset(label.span.start)..offset(label.span.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Span;

    #[test]
    fn far_labels_are_two_pictures() {
        let mut sources = SourceMap::new();
        let source = sources.add("ops.yaml", format!("first\n{}second\n", "-\n".repeat(10_000)));
        let diagnostic = Diagnostic::error("E0000", "twice", Span::new(source, 20_006..20_012), "again")
            .with_secondary(Span::new(source, 0..5), "here")
            .with_help("remove one");
        assert_eq!(
            render(&sources, &diagnostic, false),
            "error[E0000]: twice
     --> ops.yaml:10002:1
      |
10002 | second
      | ^^^^^^ again
      |
     ::: ops.yaml:1:1
      |
    1 | first
      | ----- here
      |
      = help: remove one"
        );
    }

    #[test]
    fn a_long_line_is_only_named() {
        let mut sources = SourceMap::new();
        let source = sources.add("ops.yaml", "x".repeat(1 << 20));
        let diagnostic = Diagnostic::error("E0000", "long", Span::new(source, 9..10), "here");
        assert_eq!(render(&sources, &diagnostic, false), "error[E0000]: long\n--> ops.yaml:1:10");
    }

    #[test]
    fn control_characters_of_the_spec_do_not_reach_the_terminal() {
        let mut sources = SourceMap::new();
        let source = sources.add("ops.yaml", "a: \u{1b}[31m\n");
        let diagnostic = Diagnostic::error("E0000", "bad \u{1b}[31m", Span::new(source, 3..8), "here");
        assert!(!render(&sources, &diagnostic, false).contains('\u{1b}'));
    }
}
