//! The account of everything in the two files.

use std::collections::BTreeMap;

use super::derivatives::{Derivatives, Direction};
use super::{State, Stated, Work, write};

/// One feature of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportRow {
    /// The file.
    pub file: &'static str,
    /// The field or kind of formula.
    pub feature: String,
    /// Number of occurrences.
    pub count: usize,
    /// Number of occurrences expressed by a key of the spec.
    pub translated: usize,
    /// Number of occurrences kept unchanged: under `origin` or `supplied`, or as `opaque(…)`.
    pub kept: usize,
}

/// A formula that is still C++.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opaque {
    /// The signature it belongs to.
    pub func: String,
    /// Its key.
    pub key: String,
    /// Whether it is a forward formula.
    pub forward: bool,
    /// The formula.
    pub text: String,
    /// The reason why it was not translated.
    pub reason: String,
}

/// The account of an import.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImportReport {
    /// The entries of the native functions.
    pub natives: usize,
    /// The entries of the spec that replace them.
    pub entries: usize,
    /// The functions that formulas call and that the importing project must supply.
    pub declarations: usize,
    /// Each feature.
    pub rows: Vec<ImportRow>,
    /// Each formula that was not translated.
    pub opaque: Vec<Opaque>,
    /// Translated formulas that call a declared function.
    pub with_declared: usize,
}

const NATIVE: &str = "native_functions.yaml";
const DERIVATIVES: &str = "derivatives.yaml";

pub(super) fn of(work: &Work<'_>, derivatives: &[Derivatives]) -> ImportReport {
    let mut report = ImportReport {
        natives: work.natives.len(),
        entries: work.entries.len(),
        declarations: work.declarations.len(),
        ..ImportReport::default()
    };
    native_rows(work, &mut report);
    derivative_rows(work, derivatives, &mut report);
    for (position, formulas) in &work.formulas {
        let func = work.entries[*position].schema.to_string();
        for formula in &formulas.list {
            if let State::Opaque(reason) | State::Kept(reason) = &formula.state {
                report.opaque.push(Opaque {
                    func: func.clone(),
                    key: formula.source.key.clone(),
                    forward: formula.source.direction == Direction::Forward,
                    text: formula.source.text.clone(),
                    reason: reason.clone(),
                });
            }
        }
    }
    report
}

fn native_rows(work: &Work<'_>, report: &mut ImportReport) {
    let mut fields: BTreeMap<&str, usize> = BTreeMap::new();
    for native in work.natives {
        for (field, _) in &native.fields {
            *fields.entry(field).or_default() += 1;
        }
    }
    let mut push = |feature: &str, count: usize, translated: usize| {
        let feature = feature.to_owned();
        report.rows.push(ImportRow { file: NATIVE, feature, count, translated, kept: count - translated });
    };
    push("func", work.natives.len(), work.natives.len());
    for (field, count) in fields {
        // Kernels are named under `supplied`, the language's key for them.
        let all = write::TRANSLATED.contains(&field);
        let translated = if field == "autogen" { generated(work) } else { count };
        push(field, count, if all || field == "autogen" { translated } else { 0 });
    }
    let kernels = work.natives.iter().filter(|native| native.field("dispatch").is_some());
    let kernels: usize = kernels.map(|native| native.kernels().len()).sum();
    push("kernels of dispatch", kernels, kernels);
}

/// The number of entries whose generated forms are all forms of ours.
fn generated(work: &Work<'_>) -> usize {
    let made: std::collections::HashSet<String> = work
        .entries
        .iter()
        .flat_map(|entry| {
            let own = entry.main.is_none().then(|| entry.schema.name.to_string());
            own.into_iter().chain(entry.generated().map(str::to_owned))
        })
        .collect();
    let with = work.natives.iter().filter(|native| native.field("autogen").is_some());
    with.filter(|native| native.words("autogen").iter().all(|word| made.contains(*word))).count()
}

fn derivative_rows(work: &Work<'_>, derivatives: &[Derivatives], report: &mut ImportReport) {
    let mut push = |feature: &str, count: usize, translated: usize| {
        let feature = feature.to_owned();
        report.rows.push(ImportRow {
            file: DERIVATIVES,
            feature,
            count,
            translated,
            kept: count - translated,
        });
    };
    push("name", derivatives.len(), derivatives.len());
    let formulas: Vec<&Stated<'_>> = work.formulas.values().flat_map(|formulas| &formulas.list).collect();
    let count =
        |select: &dyn Fn(&Stated<'_>) -> bool| formulas.iter().filter(|formula| select(formula)).count();
    let done = |formula: &Stated<'_>| !matches!(formula.state, State::Opaque(_) | State::Kept(_));
    let is_word = |formula: &Stated<'_>, word: &str| formula.source.text == word;
    let backward = |formula: &Stated<'_>| {
        formula.source.direction == Direction::Backward
            && !super::WORDS.contains(&formula.source.text.as_str())
    };
    let forward = |formula: &Stated<'_>| {
        formula.source.direction == Direction::Forward
            && !super::WORDS.contains(&formula.source.text.as_str())
    };
    push("backward formulas", count(&backward), count(&|formula| backward(formula) && done(formula)));
    push("explicit forward formulas", count(&forward), count(&|formula| forward(formula) && done(formula)));
    for word in super::WORDS {
        let all = count(&|formula| is_word(formula, word));
        push(word, all, count(&|formula| is_word(formula, word) && done(formula)));
    }
    let flagged = || derivatives.iter().filter(|entry| !entry.output_differentiability.is_empty());
    let plain = flagged().filter(|entry| super::are_plain(&entry.output_differentiability));
    push("output_differentiability", flagged().count(), plain.count());
    let grouped = derivatives.iter().filter(|entry| entry.by_dispatch_key).count();
    push("formulas by dispatch key", grouped, 0);
}
