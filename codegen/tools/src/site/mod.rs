//! A documentation site: a page for each operator of a spec, its guide, coverage, changes, a search.
//!
//! In: a checked spec, documents of its crate, results of a test run, earlier specs ([`SiteInput`]). Out: files of a static
//! site ([`SiteFile`]), equal bytes for equal inputs, whose pages link to each other by relative addresses and need no
//! network. Only reads from the disk. Templates, style and scripts are in `templates` and `assets` beside this file.

mod changes;
mod coverage;
mod everything;
mod fields;
mod gradients;
pub mod guide;
mod highlight;
mod html;
mod map;
mod markdown;
pub mod names;
mod operator;
mod places;
pub mod python;
mod render;
mod search;
mod sizes;
mod tests;

use opsmith_codegen::config::Config;
use opsmith_codegen::pipeline::Checked;

use crate::diff::Report;
use crate::results::Results;
use guide::Guide;
use map::SiteMap;
use names::Names;
pub use places::SourceUrl;
use render::Renderer;

/// Everything that a site is made of.
pub struct SiteInput<'a> {
    /// The spec, without mistakes.
    pub checked: &'a Checked,
    /// Its configuration.
    pub config: &'a Config,
    /// The title of the site.
    pub title: String,
    /// The version of the library; empty if unknown.
    pub version: String,
    /// The documents.
    pub guide: Guide,
    /// Names of operators in other libraries.
    pub names: Names,
    /// Results of a test run.
    pub results: Option<&'a Results>,
    /// Comparisons of each earlier spec with the next, the last with this one.
    pub releases: Vec<Release>,
    /// The address of source code.
    pub source_url: Option<SourceUrl>,
}

/// The changes between two versions of a spec.
#[derive(Clone, Debug)]
pub struct Release {
    /// The name of the earlier one.
    pub from: String,
    /// The name of the later one.
    pub to: String,
    /// The changes.
    pub report: Report,
}

/// A file of a site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteFile {
    /// Its place in the folder of the site, with `/`.
    pub path: String,
    /// Its contents.
    pub text: String,
}

/// Files that are the same in every site.
const ASSETS: &[(&str, &str)] = &[
    ("assets/style.css", include_str!("assets/style.css")),
    ("assets/site.js", include_str!("assets/site.js")),
];

/// The script of the page of coverage.
const COVERAGE_SCRIPT: (&str, &str) = ("assets/coverage.js", include_str!("assets/coverage.js"));

/// The files of a site.
///
/// # Errors
/// If a template fails, which is a defect.
pub fn site(input: &SiteInput<'_>) -> Result<Vec<SiteFile>, String> {
    let map = SiteMap::new(input);
    let renderer = Renderer::new(&map)?;
    let mut files: Vec<SiteFile> = Vec::new();
    let mut add = |path: &str, text: String| files.push(SiteFile { path: path.to_owned(), text });
    add("index.html", render::home(&renderer, &map)?);
    for index in 0..input.guide.documents.len() {
        add(&input.guide.documents[index].page, render::document(&renderer, &map, index)?);
    }
    for family in &map.families {
        add(&family.page, render::family(&renderer, &map, family)?);
    }
    let pages = operator::pages(&map);
    for page in &pages {
        add(&map.pages[&page.index], render::operator(&renderer, &map, page)?);
    }
    add("coverage.html", coverage::page(&renderer, &map)?);
    add("changes.html", changes::page(&renderer, &map)?);
    add("assets/index.js", search::index(&map));
    if input.results.is_some() {
        add("assets/coverage-data.js", coverage::data(&map));
        add(COVERAGE_SCRIPT.0, COVERAGE_SCRIPT.1.to_owned());
    }
    for (path, text) in ASSETS {
        add(path, (*text).to_owned());
    }
    add("everything.json", everything::everything(&map, &pages)?);
    Ok(files)
}
