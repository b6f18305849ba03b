//! Markdown as HTML.
//!
//! In: documents of a crate and `doc` texts of a spec. Out: HTML in which markup of the source is text, links lead where
//! the caller's [`Links`] says, headings have identifiers and follow each other without gaps, and lines of programs
//! that `rustdoc` hides are absent.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;

use super::highlight::highlight;
use super::html::{Anchors, escape};

/// The targets of links.
pub trait Links {
    /// The address of a link's destination as pages write it; `None` for one that the site does not have.
    fn link(&self, destination: &str) -> Option<String>;

    /// The address of the page about a name in code.
    fn name(&self, code: &str) -> Option<String>;
}

/// A heading of a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Heading {
    /// Its level, 1 to 6.
    pub level: u8,
    /// Its text.
    pub text: String,
    /// Its identifier in the page.
    pub anchor: String,
}

/// A document as HTML.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// The body.
    pub html: String,
    /// The headings, in order.
    pub headings: Vec<Heading>,
}

/// Markdown as HTML, whose headings begin at the level after `above`.
pub fn render(text: &str, above: u8, links: &dyn Links) -> Rendered {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        links,
        above,
        last: above,
        headings: Vec::new(),
        anchors: Anchors::default(),
        open: Vec::new(),
    };
    let mut events = Vec::new();
    let mut parser = Parser::new_ext(text, options);
    while let Some(event) = parser.next() {
        writer.event(event, &mut parser, &mut events);
    }
    let mut out = String::with_capacity(text.len() * 2);
    html::push_html(&mut out, events.into_iter());
    // A cell without text is no heading of its column.
    Rendered { html: out.replace("<th></th>", "<td></td>"), headings: writer.headings }
}

/// One paragraph of Markdown as HTML, without the element around it.
pub fn inline(text: &str, links: &dyn Links) -> String {
    let html = render(text, 1, links).html;
    let inner = html.trim().strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
    inner.filter(|inner| !inner.contains("<p>")).unwrap_or(html.trim()).to_owned()
}

/// The text of Markdown without its marks, for searches.
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    for event in Parser::new(text) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                out.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak | Event::End(_) => out.push(' '),
            _ => {}
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Changes events of the parser to those that are written.
struct Writer<'a> {
    links: &'a dyn Links,
    above: u8,
    /// The level of the last heading.
    last: u8,
    headings: Vec<Heading>,
    anchors: Anchors,
    /// Whether each open link leads somewhere.
    open: Vec<bool>,
}

impl Writer<'_> {
    fn event<'e>(
        &mut self,
        event: Event<'e>,
        parser: &mut dyn Iterator<Item = Event<'e>>,
        out: &mut Vec<Event<'e>>,
    ) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let inside = until(parser, |end| matches!(end, TagEnd::Heading(_)));
                self.heading(level, inside, out);
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let inside = until(parser, |end| matches!(end, TagEnd::CodeBlock));
                let code: String = inside.iter().map(text_of).collect();
                out.push(raw(code_block(&kind, &code)));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                let inside = until(parser, |end| matches!(end, TagEnd::Image));
                let alt: String = inside.iter().map(text_of).collect();
                out.push(raw(format!(
                    "<span class=\"image\">[{} — {}]</span>",
                    escape(&alt),
                    escape(&dest_url)
                )));
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                let to = self.links.link(&dest_url);
                self.open.push(to.is_some());
                if let Some(to) = to {
                    let away = if to.contains("://") { " rel=\"noopener noreferrer\"" } else { "" };
                    out.push(raw(format!("<a href=\"{}\"{away}>", escape(&to))));
                }
            }
            Event::End(TagEnd::Link) => {
                if self.open.pop() == Some(true) {
                    out.push(raw("</a>".to_owned()));
                }
            }
            Event::Start(Tag::Table(alignments)) => {
                out.push(raw(
                    "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">".to_owned()
                ));
                out.push(Event::Start(Tag::Table(alignments)));
            }
            Event::End(TagEnd::Table) => out.extend([Event::End(TagEnd::Table), raw("</div>".to_owned())]),
            Event::Code(code) => match self.links.name(&code).filter(|_| self.open.is_empty()) {
                Some(to) => {
                    out.push(raw(format!("<a href=\"{}\"><code>{}</code></a>", escape(&to), escape(&code))));
                }
                None => out.push(Event::Code(code)),
            },
            Event::Html(text) | Event::InlineHtml(text) => out.push(Event::Text(text)),
            event => out.push(event),
        }
    }

    fn heading<'e>(&mut self, level: HeadingLevel, inside: Vec<Event<'e>>, out: &mut Vec<Event<'e>>) {
        let text: String = inside.iter().map(text_of).collect();
        let wished = (level as u8).saturating_add(self.above).min(6);
        // Only the first heading of a page has its title's level.
        let least = if self.headings.is_empty() { self.above + 1 } else { (self.above + 1).max(2) };
        let level = wished.min(self.last + 1).max(least);
        self.last = level;
        let anchor = self.anchors.add(&text);
        out.push(raw(format!("<h{level} id=\"{0}\"><a class=\"self\" href=\"#{0}\">", escape(&anchor))));
        // A link inside of the heading's own would end that.
        let kept = inside.into_iter().filter(|event| !is_link(event));
        out.extend(kept.map(|event| match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            event => event,
        }));
        out.push(raw(format!("</a></h{level}>\n")));
        self.headings.push(Heading { level, text, anchor });
    }
}

fn is_link(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::End(TagEnd::Link | TagEnd::Image)
    )
}

fn raw<'e>(html: String) -> Event<'e> {
    Event::Html(CowStr::from(html))
}

fn text_of(event: &Event<'_>) -> String {
    match event {
        Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
            text.to_string()
        }
        Event::SoftBreak | Event::HardBreak => " ".to_owned(),
        _ => String::new(),
    }
}

/// The events up to the end of an element that was begun.
fn until<'e>(
    parser: &mut dyn Iterator<Item = Event<'e>>,
    is_end: impl Fn(&TagEnd) -> bool,
) -> Vec<Event<'e>> {
    parser.take_while(|event| !matches!(event, Event::End(end) if is_end(end))).collect()
}

/// A block of code, with the name of its file if it has one: `rust file=src/kernels/rows.rs`.
fn code_block(kind: &CodeBlockKind<'_>, code: &str) -> String {
    let info = match kind {
        CodeBlockKind::Fenced(info) => info.as_ref(),
        CodeBlockKind::Indented => "",
    };
    let mut words = info.split([' ', ',']);
    let language = words.next().unwrap_or_default();
    let file = words.find_map(|word| word.strip_prefix("file="));
    let code = if language == "rust" { visible(code) } else { code.trim_end().to_owned() };
    let title = file.map(|file| format!("<div class=\"file\">{}</div>", escape(file))).unwrap_or_default();
    format!(
        "<div class=\"code\">{title}<pre tabindex=\"0\"><code>{}</code></pre></div>\n",
        highlight(&code, language)
    )
}

/// A program without the lines that `rustdoc` hides.
fn visible(code: &str) -> String {
    let shown = code.lines().filter(|line| {
        let line = line.trim_start();
        line != "#" && !line.starts_with("# ")
    });
    shown.collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}
