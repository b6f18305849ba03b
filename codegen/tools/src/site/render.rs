//! Pages from templates.
//!
//! In: the map of a site and the contents of a page. Out: the text of the page.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, Output, State, Value, context, escape_formatter};

use opsmith_core::DType;

use super::html::escape;
use super::map::{Family, PageLink, SiteMap};
use super::markdown::{self, Heading};
use super::operator::OperatorPage;

const TEMPLATES: &[(&str, &str)] = &[
    ("page.html", include_str!("templates/page.html")),
    ("index.html", include_str!("templates/index.html")),
    ("document.html", include_str!("templates/document.html")),
    ("family.html", include_str!("templates/family.html")),
    ("operator.html", include_str!("templates/operator.html")),
    ("coverage.html", include_str!("templates/coverage.html")),
    ("changes.html", include_str!("templates/changes.html")),
];

/// Most operators that the first page names one by one; of more it has the families.
const MOST_NAMES: usize = 1200;

/// The templates, with the parts that all pages share.
pub struct Renderer {
    templates: Environment<'static>,
    site: Value,
}

/// The parts of a page that its frame shows.
pub struct Frame<'a> {
    /// Its title.
    pub title: &'a str,
    /// Its address.
    pub page: &'a str,
    /// The part of the site that it belongs to.
    pub tab: &'static str,
    /// A sentence for lists of results of searches in the web.
    pub description: &'a str,
    /// Its headings.
    pub contents: Vec<Heading>,
    /// The family that it belongs to.
    pub family: Option<&'a Family>,
}

impl Renderer {
    /// The templates for a site.
    ///
    /// # Errors
    /// If a template has a mistake, which is a defect.
    pub fn new(map: &SiteMap<'_>) -> Result<Renderer, String> {
        let mut templates = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).build();
        templates.set_syntax(syntax.map_err(|error| defect(&error))?);
        templates.set_formatter(write_escaped);
        for (name, text) in TEMPLATES {
            templates.add_template(name, text).map_err(|error| defect(&error))?;
        }
        Ok(Renderer { templates, site: site(map) })
    }

    /// A page of a template.
    ///
    /// # Errors
    /// If the template fails, which is a defect.
    pub fn page(
        &self,
        template: &str,
        map: &SiteMap<'_>,
        frame: &Frame<'_>,
        own: Value,
    ) -> Result<String, String> {
        let root = "../".repeat(frame.page.matches('/').count());
        let siblings = frame.family.map(|family| links(map, &family.operators)).unwrap_or_default();
        let shared = context! {
            site => self.site.clone(),
            root => root,
            title => frame.title,
            page => frame.page,
            tab => frame.tab,
            description => frame.description,
            contents => Serde(&frame.contents),
            family_page => frame.family.map(|family| family.page.as_str()),
            siblings => Serde(&siblings),
        };
        let template = self.templates.get_template(template).map_err(|error| defect(&error))?;
        template.render(context! { ..own, ..shared }).map_err(|error| defect(&error))
    }
}

/// Writes a value, escaped as all other text is; minijinja's own escapes the slashes of addresses, too.
fn write_escaped(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() && matches!(state.auto_escape(), AutoEscape::Html) => {
            Ok(out.write_str(&escape(text))?)
        }
        _ => escape_formatter(out, state, value),
    }
}

fn defect(error: &minijinja::Error) -> String {
    format!("a template failed, which is a defect; please report it: {error:#}")
}

/// The parts that all pages share.
fn site(map: &SiteMap<'_>) -> Value {
    let input = map.input;
    let mut tabs = Vec::new();
    if let Some(first) = input.guide.documents.first() {
        tabs.push(context! { id => "guide", title => "Guide", page => first.page.clone() });
    }
    tabs.push(context! { id => "operators", title => "Operators", page => "index.html" });
    tabs.push(context! { id => "coverage", title => "Coverage", page => "coverage.html" });
    tabs.push(context! { id => "changes", title => "Changes", page => "changes.html" });
    let guide: Vec<Value> = input
        .guide
        .parts()
        .into_iter()
        .map(|(title, documents)| {
            let pages = documents
                .iter()
                .map(|document| context! { title => document.title.clone(), page => document.page.clone() });
            context! { title => title, pages => pages.collect::<Vec<_>>() }
        })
        .collect();
    let families: Vec<Value> = map
        .families
        .iter()
        .map(|family| context! { title => family.title.clone(), page => family.page.clone(), count => family.operators.len() })
        .collect();
    let spec = input.config.spec.file_name().map(|name| name.to_string_lossy().into_owned());
    context! {
        title => input.title.clone(), version => input.version.clone(), tabs => tabs, guide => guide, families => families,
        spec => spec,
    }
}

fn links(map: &SiteMap<'_>, operators: &[usize]) -> Vec<PageLink> {
    operators.iter().map(|index| map.operator(&map.op(*index).name)).collect()
}

/// The first page.
pub fn home(renderer: &Renderer, map: &SiteMap<'_>) -> Result<String, String> {
    let named = map.pages.len() <= MOST_NAMES;
    let families: Vec<Value> = map
        .families
        .iter()
        .map(|family| {
            let operators = if named { links(map, &family.operators) } else { Vec::new() };
            context! {
                title => family.title.clone(), page => family.page.clone(), count => family.operators.len(),
                operators => Serde(&operators),
            }
        })
        .collect();
    let cards: Vec<Value> = map
        .input
        .guide
        .documents
        .iter()
        .take(9)
        .map(|document| {
            context! { title => document.title.clone(), page => document.page.clone(), text => first_sentence(&document.text) }
        })
        .collect();
    let frame = Frame {
        title: &map.input.title,
        page: "index.html",
        tab: "operators",
        description: "",
        contents: Vec::new(),
        family: None,
    };
    let own = context! { families => families, intro => cards, count => map.pages.len() };
    renderer.page("index.html", map, &frame, own)
}

/// The first sentence of a document's first paragraph.
fn first_sentence(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(str::trim);
    let first = paragraphs
        .into_iter()
        .find(|part| part.starts_with(|letter: char| letter.is_alphanumeric() || letter == '`'));
    summary(first.unwrap_or_default())
}

/// The first sentence of Markdown, without its marks.
pub fn summary(text: &str) -> String {
    let plain = markdown::plain(text.split("\n\n").next().unwrap_or_default());
    let end = plain.find(". ").map_or(plain.len(), |end| end + 1);
    plain[..end].to_owned()
}

/// A page of the guide.
pub fn document(renderer: &Renderer, map: &SiteMap<'_>, index: usize) -> Result<String, String> {
    let documents = &map.input.guide.documents;
    let document = &documents[index];
    let rendered = markdown::render(&document.text, 0, &map.links(&document.path, "../"));
    let contents = rendered.headings.iter().filter(|heading| (2..=3).contains(&heading.level)).cloned();
    let description = first_sentence(&document.text);
    let frame = Frame {
        title: &document.title,
        page: &document.page,
        tab: "guide",
        description: &description,
        contents: contents.collect(),
        family: None,
    };
    let neighbour = |index: Option<usize>| {
        let document = documents.get(index?)?;
        Some(context! { title => document.title.clone(), page => document.page.clone() })
    };
    let own = context! {
        html => rendered.html, previous => neighbour(index.checked_sub(1)), next => neighbour(Some(index + 1)),
    };
    renderer.page("document.html", map, &frame, own)
}

/// The page of a family.
pub fn family(renderer: &Renderer, map: &SiteMap<'_>, family: &Family) -> Result<String, String> {
    let links = map.links("", "../");
    let operators: Vec<Value> = family
        .operators
        .iter()
        .map(|index| {
            let op = map.op(*index);
            let first = op.doc.split("\n\n").next().unwrap_or_default();
            context! { title => op.name.clone(), page => map.pages[index].clone(), summary => markdown::inline(first, &links) }
        })
        .collect();
    let place = super::places::place(&family.file, &map.input.config.spec, map.input.source_url.as_ref());
    let code = format!("<code>{}</code>", escape(&place.text));
    let declared = match &place.url {
        Some(url) => format!("<a href=\"{}\">{code}</a>", escape(url)),
        None => code,
    };
    let frame = Frame {
        title: &family.title,
        page: &family.page,
        tab: "operators",
        description: "",
        contents: Vec::new(),
        family: Some(family),
    };
    renderer.page("family.html", map, &frame, context! { operators => operators, declared => declared })
}

/// The page of an operator.
pub fn operator(renderer: &Renderer, map: &SiteMap<'_>, page: &OperatorPage) -> Result<String, String> {
    let op = map.op(page.index);
    let family = map.family_of(page.index);
    let description = summary(&op.doc);
    let frame = Frame {
        title: &op.name,
        page: &map.pages[&page.index],
        tab: "operators",
        description: &description,
        contents: page.contents(),
        family,
    };
    let dtypes: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
    let own = context! {
        op => Serde(page), family => family.map(|family| family.title.as_str()), dtypes => dtypes,
    };
    renderer.page("operator.html", map, &frame, own)
}
