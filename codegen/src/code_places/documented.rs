//! The Rust functions of a spec in the words of their documentation.
//!
//! In: a model, and the places of functions. Out: results and refusals of each function, as parts of sentences. Must
//! not know the text of documents around them.

use std::collections::BTreeMap;

use super::CodePlaces;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{DocumentedFunction, Model};

/// The functions that rules of the spec's own operators and views name.
pub(crate) fn functions(model: &Model, places: &mut CodePlaces) -> BTreeMap<String, DocumentedFunction> {
    let mut found = BTreeMap::new();
    for op in model.ops.iter().filter(|op| !op.is_external()) {
        let mut paths: Vec<&str> = op.body.view.iter().map(String::as_str).collect();
        if let Some(infer) = &op.infer {
            paths.extend(infer.function.as_deref());
            for rule in infer.shapes.iter().chain(&infer.run_shapes).chain(&infer.dtypes) {
                paths.extend(named(rule));
            }
        }
        for path in paths {
            if found.contains_key(path) {
                continue;
            }
            let Some((text, mut parameters)) = places.documentation(path) else { continue };
            let mut names = op.args.iter().map(|arg| arg.name.clone());
            if op.infer.as_ref().is_some_and(|infer| infer.function.as_deref() == Some(path)) {
                // It reads the arguments of a call by their names.
                parameters = names.collect();
            } else if op.body.view.as_deref() == Some(path) {
                // The layout is that of the first argument.
                parameters = names.next().into_iter().chain(parameters.into_iter().skip(1)).collect();
            }
            let function = function(path, &text, parameters, places);
            found.insert(path.to_owned(), function);
        }
    }
    found
}

/// The functions that a rule names.
fn named(rule: &Expr) -> Vec<&str> {
    let mut paths = Vec::new();
    let mut open = vec![rule];
    while let Some(part) = open.pop() {
        if let ExprKind::Native(path, _) = &part.kind {
            paths.push(path.as_str());
        }
        open.extend(part.children());
    }
    paths
}

fn function(path: &str, text: &str, parameters: Vec<String>, places: &mut CodePlaces) -> DocumentedFunction {
    let (meaning, refused) = parts(text);
    let gives = told(path, meaning, &parameters, places, |text| parts(text).0);
    let refuses = told(path, refused, &parameters, places, |text| parts(text).1);
    DocumentedFunction { parameters, gives, refuses }
}

/// The first paragraph of a documentation, and that about errors; empty ones are not there.
fn parts(text: &str) -> (&str, &str) {
    let (meaning, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let errors = rest.split_once("# Errors\n").map_or("", |(_, errors)| errors.trim_start());
    let meaning = if meaning.starts_with('#') { "" } else { meaning };
    (meaning, errors.split("\n\n").next().unwrap_or_default())
}

/// The first sentence of a paragraph as the rest of one; `As [`other`]` stands for that of another function of the module. `None` if it
/// refers to more, and empty if there is no paragraph or it says that there is nothing.
fn told(
    path: &str,
    paragraph: &str,
    parameters: &[String],
    places: &mut CodePlaces,
    of: fn(&str) -> &str,
) -> Option<String> {
    let sentence = first_sentence(paragraph);
    let Some((name, rest)) = sentence.strip_prefix("As [`").and_then(|rest| rest.split_once("`]")) else {
        return (!sentence.contains("[`")).then(|| small(&sentence));
    };
    if rest.contains("[`") {
        return None;
    }
    let module = path.rsplit_once("::").map_or("", |(module, _)| module);
    let other = format!("{module}::{}", name.rsplit("::").next().unwrap_or(name));
    let (text, others) = places.documentation(other.trim_start_matches("::"))?;
    let other = first_sentence(of(&text));
    // A sentence about a parameter means nothing where there is none of the name.
    let is_missing = |name: &String| !parameters.contains(name) && other.contains(&format!("`{name}`"));
    let is_plain = !other.is_empty() && !other.contains("[`") && !others.iter().any(is_missing);
    is_plain.then(|| format!("{}{rest}", small(&other)))
}

/// The first sentence of a paragraph in one line, without its end; empty if it says that there is nothing.
fn first_sentence(paragraph: &str) -> String {
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split(". ").next().unwrap_or_default().trim_end_matches('.');
    if sentence.starts_with("None") { String::new() } else { sentence.to_owned() }
}

/// A sentence as the rest of one. A letter alone is a name, and so are words in large letters.
fn small(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || (first == 'A' && second == ' ') => {
            format!("{}{}", first.to_lowercase(), &sentence[first.len_utf8()..])
        }
        _ => sentence.to_owned(),
    }
}
