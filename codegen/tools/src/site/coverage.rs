//! The page of coverage: operators by backend, dtype and check, from results of a test run.
//!
//! In: the results of a site's input. Out: the page, and its data for the script that filters and sorts the table: outcomes
//! are a letter for each dtype, `p` passed, `f` failed, `s` left out, `.` not tried. Nothing is taken from declarations.

use minijinja::{Value, context};
use serde_json::{Value as Json, json};

use super::map::SiteMap;
use super::markdown;
use super::render::{Frame, Renderer};
use crate::results::{Cell, Outcome};

/// Advice for a site without results, Markdown.
const HOW: &str = "Record results by `OPSMITH_RESULTS=$PWD/target/opsmith/results cargo test`, then run \
                   `opsmith docs --results target/opsmith/results`.";

/// The page.
pub fn page(renderer: &Renderer, map: &SiteMap<'_>) -> Result<String, String> {
    let frame = Frame {
        title: "Coverage",
        page: "coverage.html",
        tab: "coverage",
        description: "Outcomes of the checks of each operator",
        contents: Vec::new(),
        family: None,
    };
    let model = &map.input.checked.model;
    let own = context! {
        has_results => map.input.results.is_some(),
        stale => map.input.results.is_some_and(|results| !results.is_of(model)),
        how => markdown::inline(HOW, &map.links("", "")),
        totals => totals(map),
    };
    renderer.page("coverage.html", map, &frame, own)
}

/// Numbers above the table.
fn totals(map: &SiteMap<'_>) -> Vec<Value> {
    let mut tested = 0;
    let (mut passed, mut failed, mut skipped) = (0_usize, 0_usize, 0_usize);
    for (_, cells) in cells_of(map) {
        tested += usize::from(!cells.is_empty());
        for cell in cells {
            match cell.outcome {
                Outcome::Passed(_) => passed += 1,
                Outcome::Failed(_) => failed += 1,
                Outcome::Skipped(_) => skipped += 1,
            }
        }
    }
    let total = |title: &str, number: String| context! { title => title, number => number };
    vec![
        total("operators tested", format!("{tested} of {}", map.pages.len())),
        total("passed", passed.to_string()),
        total("failed", failed.to_string()),
        total("left out", skipped.to_string()),
    ]
}

/// The outcomes of each operator of the spec.
fn cells_of<'m>(map: &'m SiteMap<'_>) -> impl Iterator<Item = (usize, &'m [Cell])> {
    map.pages.keys().map(|index| {
        let results = map.input.results.and_then(|results| results.operator(&map.op(*index).name));
        (*index, results.map_or(&[] as &[Cell], |results| results.cells.as_slice()))
    })
}

/// The position of an item, which is added if it is new.
fn position(items: &mut Vec<String>, item: &str) -> usize {
    items.iter().position(|known| known == item).unwrap_or_else(|| {
        items.push(item.to_owned());
        items.len() - 1
    })
}

/// The data of the table, a script that sets a variable.
pub fn data(map: &SiteMap<'_>) -> String {
    let (mut backends, mut dtypes, mut checks) = (Vec::new(), Vec::new(), Vec::new());
    for (_, cells) in cells_of(map) {
        for cell in cells {
            position(&mut backends, &cell.backend);
            position(&mut dtypes, &cell.dtype);
            position(&mut checks, &cell.check);
        }
    }
    let mut rows: Vec<Json> = Vec::new();
    for (index, cells) in cells_of(map) {
        let name = &map.op(index).name;
        if cells.is_empty() {
            rows.push(json!([name, map.pages[&index], -1, []]));
        }
        for (number, backend) in backends.iter().enumerate() {
            let mut table = vec![vec!['.'; dtypes.len()]; checks.len()];
            let own = cells.iter().filter(|cell| cell.backend == *backend);
            let mut count = 0;
            for cell in own {
                let check = checks.iter().position(|known| *known == cell.check);
                let dtype = dtypes.iter().position(|known| *known == cell.dtype);
                let (Some(check), Some(dtype)) = (check, dtype) else { continue };
                table[check][dtype] = letter(&cell.outcome);
                count += 1;
            }
            if count > 0 {
                let table: Vec<String> = table
                    .into_iter()
                    .map(|outcomes| outcomes.into_iter().collect::<String>().trim_end_matches('.').to_owned())
                    .collect();
                rows.push(json!([name, map.pages[&index], number, table]));
            }
        }
    }
    let data = json!({ "backends": backends, "dtypes": dtypes, "checks": checks, "rows": rows });
    format!("window.opsmithCoverage={data};\n")
}

fn letter(outcome: &Outcome) -> char {
    match outcome {
        Outcome::Passed(_) => 'p',
        Outcome::Failed(_) => 'f',
        Outcome::Skipped(_) => 's',
    }
}
