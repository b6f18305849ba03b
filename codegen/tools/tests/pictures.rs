//! Formulas and plots of every stock operator: well-formed, with nothing empty, of bounded size.

use std::path::Path;
use std::sync::LazyLock;

use opsmith_codegen::config::Config;
use opsmith_codegen::emit;
use opsmith_codegen::model::Model;
use opsmith_codegen::pipeline;
use opsmith_tools::plot::{Plot, plot};
use opsmith_tools::typeset;
use roxmltree::{Document, Node};

static STOCK: LazyLock<Model> = LazyLock::new(|| {
    let config = Config::stock(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops.yaml"));
    let checked = pipeline::check(&config).expect("the stock spec can be read");
    assert_eq!(checked.diagnostics.error_count(), 0, "the stock spec has no mistakes");
    checked.model
});

/// The formulas of an operator, each with its place in messages.
fn formulas(model: &Model) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for op in &model.ops {
        found.extend(typeset::definition(model, op).map(|math| (format!("{}, definition", op.name), math)));
        for formula in typeset::derivatives(model, op) {
            let place = format!("{}, gradient of {}", op.name, formula.argument);
            found.extend(formula.math.map(|math| (place, math)));
        }
        for (index, shape) in typeset::shapes(model, op).into_iter().enumerate() {
            found.extend(shape.map(|math| (format!("{}, shape of result {index}", op.name), math)));
        }
    }
    found
}

/// The number of parts that an element of MathML has; `None` if any number is right.
fn arity(name: &str) -> Option<usize> {
    match name {
        "mfrac" | "msup" | "msub" | "mover" | "munder" => Some(2),
        "msubsup" | "munderover" => Some(3),
        "msqrt" => Some(1),
        _ => None,
    }
}

/// The mistake in an element and those inside it.
fn mistake(node: Node<'_, '_>) -> Option<String> {
    let name = node.tag_name().name();
    let known = [
        "math",
        "mrow",
        "mi",
        "mn",
        "mo",
        "mtext",
        "mspace",
        "mfrac",
        "msup",
        "msub",
        "mover",
        "msqrt",
        "munder",
        "munderover",
        "msubsup",
        "mtable",
        "mtr",
        "mtd",
    ];
    let parts: Vec<Node<'_, '_>> = node.children().filter(|child| child.is_element()).collect();
    if !known.contains(&name) {
        return Some(format!("<{name}> is no element of a formula"));
    }
    if arity(name).is_some_and(|count| count != parts.len()) {
        return Some(format!("<{name}> has {} parts", parts.len()));
    }
    let is_text = matches!(name, "mi" | "mn" | "mo" | "mtext");
    if is_text && node.text().is_none_or(|text| text.trim().is_empty() || text == "?") {
        return Some(format!("<{name}> is empty, or a name is unknown"));
    }
    if !is_text && name != "mspace" && parts.is_empty() {
        return Some(format!("<{name}> is empty"));
    }
    parts.into_iter().find_map(mistake)
}

#[test]
fn every_formula_is_well_formed() {
    let formulas = formulas(&STOCK);
    assert!(formulas.len() > 900, "only {} formulas", formulas.len());
    let mut wrong = Vec::new();
    for (place, math) in formulas {
        match Document::parse(&math) {
            Ok(document) => {
                wrong.extend(mistake(document.root_element()).map(|why| format!("{place}: {why}: {math}")));
            }
            Err(error) => wrong.push(format!("{place}: {error}: {math}")),
        }
    }
    assert!(wrong.is_empty(), "{} formulas:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_operator_with_an_expression_has_a_definition_and_every_formula_its_row() {
    for op in &STOCK.ops {
        let target = op.alias_of.map_or(op, |id| &STOCK.ops[id.0]);
        let target_has_body = target.body.pointwise.is_some() || target.body.composite.is_some();
        let defined = typeset::definition(&STOCK, op).is_some();
        // A kernel's formula is that of its entry, or its notation.
        let is_written = target.facts.formula.is_some() || !target.facts.notation.is_empty();
        assert_eq!(defined, target_has_body || is_written, "{}", op.name);
        let rows = typeset::derivatives(&STOCK, op);
        assert!(rows.len() >= op.derivatives.len(), "{}", op.name);
        for row in &rows {
            assert!(!row.argument.is_empty() && !row.source.is_empty(), "{}: {row:?}", op.name);
        }
        if op.infer.is_some() {
            assert_eq!(typeset::shapes(&STOCK, op).len(), op.visible().len(), "{}", op.name);
            assert_eq!(emit::rules_of_results(op, &STOCK).len(), op.visible().len(), "{}", op.name);
        }
    }
}

#[test]
fn every_plot_is_a_small_picture() {
    let (mut drawn, mut refused) = (0, 0);
    for op in &STOCK.ops {
        match plot(&STOCK, op) {
            Plot::Svg(svg) => {
                drawn += 1;
                assert!(svg.len() <= 15_000, "{} has {} bytes", op.name, svg.len());
                let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{}: {error}", op.name));
                let root = document.root_element();
                assert_eq!(root.attribute("role"), Some("img"), "{}", op.name);
                assert!(
                    root.attribute("aria-label").is_some_and(|text| text.contains(&op.name)),
                    "{}",
                    op.name
                );
                let inner = root.children().find(|child| child.has_tag_name("svg")).expect("the curves");
                let paths: Vec<&str> = inner.children().filter_map(|path| path.attribute("d")).collect();
                assert!(paths.iter().any(|path| path.len() > 8), "{} has no curve", op.name);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}: {svg}", op.name);
            }
            Plot::None(why) => {
                refused += 1;
                assert!(why.to_string().len() > 10, "{}: {why}", op.name);
            }
        }
    }
    assert!(drawn > 90 && refused > 200, "{drawn} plots, {refused} operators without");
}

/// A page of all formulas and plots, to look at: `cargo test -p opsmith-tools --test pictures -- --ignored --nocapture`.
#[test]
#[ignore = "prints a page to look at"]
fn a_page_to_look_at() {
    println!(
        "<!doctype html><meta charset=\"utf-8\"><style>body{{font-family:sans-serif}}math{{margin:4px 20px}}</style>"
    );
    for op in &STOCK.ops {
        println!("<h3 id=\"{0}\">{0}</h3><code>{1}</code>", op.name, op.signature.replace('<', "&lt;"));
        println!("{}", typeset::definition(&STOCK, op).unwrap_or_default());
        for formula in typeset::derivatives(&STOCK, op) {
            println!(
                "{}<small>{} saves {:?}</small>",
                formula.math.unwrap_or_default(),
                formula.source.replace('<', "&lt;"),
                formula.saved
            );
        }
        for (words, math) in std::iter::zip(emit::rules_of_results(op, &STOCK), typeset::shapes(&STOCK, op)) {
            println!("<p>{}</p>{}", words.shape.replace('<', "&lt;"), math.unwrap_or_default());
        }
        match plot(&STOCK, op) {
            Plot::Svg(svg) => println!("{svg}"),
            Plot::None(why) => println!("<p>No plot: {why}</p>"),
        }
    }
}
