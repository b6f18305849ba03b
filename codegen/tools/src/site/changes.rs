//! The page of changes between versions of the spec.
//!
//! In: the comparisons of a site's input. Out: the page.

use minijinja::{Value, context};

use super::map::SiteMap;
use super::markdown::{self, Heading};
use super::render::{Frame, Renderer};
use crate::diff::{Change, Class};

/// The page.
pub fn page(renderer: &Renderer, map: &SiteMap<'_>) -> Result<String, String> {
    let (mut releases, mut contents) = (Vec::new(), Vec::new());
    // The newest changes come first.
    for (index, release) in map.input.releases.iter().rev().enumerate() {
        let number = index + 1;
        let classes: Vec<Value> = [
            (Class::Breaking, "breaking", "Breaking"),
            (Class::Additive, "additive", "Additive"),
            (Class::Internal, "internal", "Internal"),
        ]
        .into_iter()
        .filter_map(|(class, name, title)| {
            let changes: Vec<Value> =
                release.report.of(class).map(|change| self::change(map, change)).collect();
            (!changes.is_empty()).then(|| context! { name => name, title => title, changes => changes })
        })
        .collect();
        releases.push(context! { id => number, from => release.from.clone(), to => release.to.clone(), classes => classes });
        contents.push(Heading {
            level: 2,
            text: format!("From {} to {}", release.from, release.to),
            anchor: format!("release-{number}"),
        });
    }
    let frame = Frame {
        title: "Changes",
        page: "changes.html",
        tab: "changes",
        description: "Changes between versions of the spec",
        contents,
        family: None,
    };
    renderer.page("changes.html", map, &frame, context! { releases => releases })
}

fn change(map: &SiteMap<'_>, change: &Change) -> Value {
    let links = map.links("", "");
    context! {
        name => change.name.clone(),
        page => map.operator(&change.name).page,
        text => markdown::inline(&change.what, &links),
        migration => change.migration.as_ref().map(|text| markdown::inline(text, &links)),
        rule => change.rule,
    }
}
