//! The map of a site: its pages and their addresses.
//!
//! In: [`SiteInput`]. Out: [`SiteMap`], which every other module asks for addresses.

use std::collections::{BTreeMap, HashMap};

use opsmith_codegen::model::Op;
use serde::Serialize;

use super::SiteInput;
use super::guide::resolve;
use super::html::FileNames;
use super::markdown::Links;
use super::places::{place, relative};

/// The pages of a site.
pub struct SiteMap<'a> {
    /// The input.
    pub input: &'a SiteInput<'a>,
    /// The page of each operator of the spec itself, by its number in the model: `ops/add.Tensor.html`.
    pub pages: BTreeMap<usize, String>,
    /// The families, in the order of the spec.
    pub families: Vec<Family>,
    by_name: HashMap<&'a str, usize>,
    /// The only operator that has a name without overload.
    by_base: HashMap<&'a str, Option<usize>>,
}

/// Operators that one file declares, or some of them if they are too many for a page.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its title, the name of the file without its ending.
    pub title: String,
    /// The file.
    pub file: String,
    /// Its page.
    pub page: String,
    /// The operators, by their numbers in the model.
    pub operators: Vec<usize>,
}

/// A link to a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PageLink {
    /// Its text.
    pub title: String,
    /// Its address from the root of the site; `None` if the site has no page about it.
    pub page: Option<String>,
}

/// The most operators of a family: a page lists all of its own, and the sidebar of each of them does.
const MOST_OF_A_FAMILY: usize = 150;

impl<'a> SiteMap<'a> {
    /// The map of a site.
    pub fn new(input: &'a SiteInput<'a>) -> SiteMap<'a> {
        let model = &input.checked.model;
        let mut map = SiteMap {
            input,
            pages: BTreeMap::new(),
            families: Vec::new(),
            by_name: HashMap::new(),
            by_base: HashMap::new(),
        };
        let mut names = FileNames::default();
        let mut files: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, op) in model.ops.iter().enumerate().filter(|(_, op)| !op.is_external()) {
            map.pages.insert(index, format!("ops/{}.html", names.add(&op.name)));
            map.by_name.insert(&op.name, index);
            map.by_base.entry(&op.base).and_modify(|only| *only = None).or_insert(Some(index));
            let file = relative(op.file(), &input.config.spec);
            match files.iter_mut().find(|(known, _)| *known == file) {
                Some((_, operators)) => operators.push(index),
                None => files.push((file, vec![index])),
            }
        }
        map.families = families(files);
        map
    }

    /// The operator of a number.
    pub fn op(&self, index: usize) -> &'a Op {
        &self.input.checked.model.ops[index]
    }

    /// A link to the operator of a full name, which a parent library may have.
    pub fn operator(&self, name: &str) -> PageLink {
        let page = self.by_name.get(name).map(|index| self.pages[index].clone());
        PageLink { title: name.to_owned(), page }
    }

    /// The family of an operator.
    pub fn family_of(&self, index: usize) -> Option<&Family> {
        self.families.iter().find(|family| family.operators.contains(&index))
    }

    /// The links of a document at a place relative to the folder of the spec, on a page below `root`.
    pub fn links<'m>(&'m self, document: &'m str, root: &'m str) -> PageLinks<'m> {
        PageLinks { map: self, document, root, own: None }
    }

    /// As [`SiteMap::links`], for the page of an operator, which does not link to itself.
    pub fn links_of(&self, index: usize) -> PageLinks<'_> {
        PageLinks { map: self, document: "", root: "../", own: Some(index) }
    }
}

/// The usual name of a spec without its ending, and that of the family of its own entries beside families in other files.
const ROOT: &str = "ops";
const BASICS: &str = "basics";

fn families(files: Vec<(String, Vec<usize>)>) -> Vec<Family> {
    let mut names = FileNames::default();
    let mut families = Vec::new();
    let alone = files.len() == 1;
    for (file, operators) in files {
        let name = file.rsplit('/').next().unwrap_or(&file);
        let name = name.split_once('.').map_or(name, |(stem, _)| stem).replace('_', " ");
        // The entries of the spec itself, where others have files for their families.
        let name = if name == ROOT && !alone { BASICS.to_owned() } else { name };
        let several = operators.len() > MOST_OF_A_FAMILY;
        for (number, part) in operators.chunks(MOST_OF_A_FAMILY).enumerate() {
            let title = if several { format!("{name} {}", number + 1) } else { name.clone() };
            let page = format!("families/{}.html", names.add(&title.replace(' ', "-")));
            families.push(Family { title, file: file.clone(), page, operators: part.to_vec() });
        }
    }
    families
}

/// The links of a text.
pub struct PageLinks<'m> {
    map: &'m SiteMap<'m>,
    document: &'m str,
    root: &'m str,
    own: Option<usize>,
}

impl Links for PageLinks<'_> {
    fn link(&self, destination: &str) -> Option<String> {
        let is_web = ["https://", "http://", "mailto:"].iter().any(|scheme| destination.starts_with(scheme));
        if is_web || destination.starts_with('#') {
            return Some(destination.to_owned());
        }
        let (file, fragment) = match destination.split_once('#') {
            Some((file, fragment)) => (file, format!("#{fragment}")),
            None => (destination, String::new()),
        };
        let path = resolve(self.document, file)?;
        match self.map.input.guide.page(&path) {
            Some(page) => Some(format!("{}{page}{fragment}", self.root)),
            None => place(&path, &self.map.input.config.spec, self.map.input.source_url.as_ref()).url,
        }
    }

    fn name(&self, code: &str) -> Option<String> {
        // On its own page, an argument of the name of an operator is the argument.
        let is_argument = |index: usize| self.map.op(index).arg_index(code).is_some();
        if self.own.is_some_and(is_argument) {
            return None;
        }
        let index = match self.map.by_name.get(code) {
            Some(index) => *index,
            None => (*self.map.by_base.get(code)?)?,
        };
        (self.own != Some(index)).then(|| format!("{}{}", self.root, self.map.pages[&index]))
    }
}
