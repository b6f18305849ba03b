//! The facts that documents show of every stock operator: none may be missing.

use opsmith_codegen::Config;
use opsmith_codegen::analysis::fingerprint::fingerprint;
use opsmith_codegen::config::Parent;
use opsmith_codegen::emit;
use opsmith_codegen::model::{FormulaNode, Op};
use opsmith_codegen::pipeline;
use opsmith_tools::results::Results;
use opsmith_tools::site::{SiteFile, site};
use opsmith_tools::typeset;

use super::{Folder, broken, input, root, stock, stock_site};

/// The operators that users call, each with the one that it is another name of, or itself.
fn public(ops: &[Op]) -> impl Iterator<Item = (&Op, &Op)> {
    let shown = ops.iter().filter(|op| !op.facts.backward_only && !op.is_supplied());
    shown.map(|op| (op, op.alias_of.map_or(op, |id| &ops[id.0])))
}

#[test]
fn every_public_operator_is_documented_with_an_example() {
    let (checked, _) = stock();
    let model = &checked.model;
    let mut wrong = Vec::new();
    for (op, meant) in public(&model.ops) {
        let mut missing = |what: String| wrong.push(format!("{} ({}): {what}", op.name, op.location));
        if op.doc.trim().is_empty() {
            missing("no documentation".to_owned());
        }
        // Another name may have other names of arguments.
        let args = op.args.iter().chain(&meant.args);
        for arg in args.filter(|arg| arg.doc.trim().is_empty()) {
            missing(format!("no meaning of the argument `{}`", arg.name));
        }
        let visible = meant.visible();
        for output in visible.iter().filter(|output| output.doc.trim().is_empty() && output.name.is_some()) {
            missing(format!("no meaning of the result `{}`", output.name.as_deref().unwrap_or_default()));
        }
        let returns_tensors = meant.returns_tensors() && !visible.is_empty();
        if returns_tensors && emit::rules_of_results(meant, model).len() != visible.len() {
            missing("no rules of its results".to_owned());
        }
        if emit::worked(op, meant).is_none() {
            missing("no sample that Rust can write as an example".to_owned());
        }
    }
    assert!(wrong.is_empty(), "{} facts are missing:\n{}", wrong.len(), wrong.join("\n"));
}

/// The text of a page without markup; formulas are `[formula]`, pictures `[picture]`.
fn text(files: &[SiteFile], page: &str) -> String {
    let file = files.iter().find(|file| file.path == page).unwrap_or_else(|| panic!("no {page}"));
    let main = file.text.split_once("<main").expect("a main part").1;
    let mut text = String::new();
    for part in main.split('<') {
        let (tag, rest) = part.split_once('>').unwrap_or(("", part));
        text.push_str(match tag.split(' ').next() {
            Some("math") => "[formula]",
            Some("svg") => "[picture]",
            _ => "",
        });
        text.push_str(rest);
    }
    let text = text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn pages_have_every_fact() {
    let page = text(stock_site(), "ops/addmm.html");
    assert_parts(
        &page,
        &[
            // The signature in every form and language.
            "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
            "pub fn addmm(self_: &Tensor, mat1: &Tensor, mat2: &Tensor) -> Result<Tensor>",
            "pub fn addmm_with_out(",
            "self_.addmm_(mat1, mat2)",
            "call(\"addmm.out\", …)",
            "addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None)",
            // Arguments with types, defaults and constraints; results in words and symbols.
            "beta Scalar default 1 by keyword",
            "Shape: [mat1.size(0), mat2.size(1)] (2 dimensions: size 0 of mat1 by size 1 of mat2)[formula]",
            "Dtype: same(self, mat1, mat2) (the dtype all operands share; different dtypes are an error)",
            // Gradients, with the arguments saved for backward.
            "Gradient of mat2 [formula]",
            "Backward saves mat1, alpha.",
            "Second ordersupported",
            "DeterminismEqual inputs give equal results",
            "CPU Rust function linalg::addmm at kernels/src/cpu/linalg",
            "unless mat1.size(1) == mat2.size(0)",
            "PyTorchtorch.addmm",
            "Arithmetic operations: ",
        ],
    );
    // A kernel's formula is its notation. Pointwise: definition and picture. A composition: the operators that it calls.
    assert_parts(&text(stock_site(), "ops/mm.html"), &["Definition [formula]", "Arithmetic operations: "]);
    assert_parts(&text(stock_site(), "ops/gelu.html"), &["Definition [formula]", "[picture]", "ONNXGelu"]);
    let composed = text(stock_site(), "ops/log_softmax.int.html");
    assert_parts(&composed, &["In terms of other operators: ", "Calls _log_softmax", "Definition [formula]"]);
    assert_parts(&text(stock_site(), "ops/clamp.html"), &["numpy.clip"]);
}

#[test]
fn another_name_has_the_facts_of_its_operator() {
    let (checked, config) = stock();
    let own = fingerprint(&checked.model);
    let head =
        format!("{{\"opsmith_results\":1,\"library\":\"mine\",\"fingerprint\":\"{own:016x}\",\"time\":1}}\n");
    let example = "{\"op\":\"abs\",\"example\":{\"code\":\"let result = abs(&x)?;\",\"output\":\"[7]\"}}\n";
    let refused = |dtype: &str| {
        format!(
            "{{\"op\":\"abs\",\"backend\":\"CPU\",\"dtype\":\"{dtype}\",\"check\":\"forward\",\"skipped\":\"nothing for {dtype}\"}}\n"
        )
    };
    let timing =
        "{\"lib\":\"opsmith\",\"case\":\"ew.abs_1e6\",\"op\":\"abs\",\"median_ns\":1500,\"gbs\":12.5}\n";
    let lines = [head.as_str(), example, &refused("bool"), &refused("uint8"), timing].concat();
    let folder = Folder::new("alias", &[("a.jsonl", &lines)]);
    let results = Results::read(&folder.0).unwrap();
    let files = site(&input(&checked, &config, &root(), Some(&results))).unwrap();
    assert_parts(
        &text(&files, "ops/absolute.html"),
        &["let result = absolute(&x)?; prints[7]", "Forward modesupported"],
    );
    let page = text(&files, "ops/abs.html");
    assert_parts(&page, &["forward · CPU, bool, uint8: left out: nothing for this dtype"]);
    assert_parts(&page, &["Measured speed", "ew.abs_1e6", "1.50 µs", "12.5 GB/s"]);
}

#[test]
fn versions_are_on_the_page() {
    let spec = "edition: 1\nops:\n\
        - {func: old(Tensor self) -> Tensor, doc: Old., since: 0.1.0, deprecated: {since: 0.2.0, use: new}, pointwise: self}\n\
        - {func: new(Tensor self) -> Tensor, doc: New., known_as: [numpy.new], deterministic: false, pointwise: self}\n";
    let checked = pipeline::check_text("spec.yaml", spec);
    let found: Vec<&String> = checked.diagnostics.sorted().map(|found| &found.message).collect();
    assert!(!checked.diagnostics.has_errors(), "{found:?}");
    let folder = Folder::new("versions", &[]);
    let config = Config::stock(folder.0.join("spec.yaml"));
    let files = site(&input(&checked, &config, &folder.0, None)).unwrap();
    assert_parts(&text(&files, "ops/old.html"), &["since 0.1.0", "Deprecated since 0.2.0. Use new instead."]);
    assert_parts(
        &text(&files, "ops/new.html"),
        &["Also found asnumpy.new", "Equal inputs may give other results."],
    );
}

/// An operator of a library that the spec builds on has a page in that library's site alone.
#[test]
fn another_name_of_an_operator_elsewhere_has_no_link() {
    let spec = "edition: 1\nops:\n\
        - {func: \"plus(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\", doc: Plus., alias_of: add.Tensor}\n";
    let folder = Folder::new("elsewhere", &[("ops.yaml", spec)]);
    let mut config = Config::new(folder.0.join("ops.yaml"));
    config.parents.push(Parent::new(root().join("ops.yaml"), "opsmith"));
    let checked = pipeline::check(&config).unwrap();
    assert!(!checked.diagnostics.has_errors());
    let files = site(&input(&checked, &config, &folder.0, None)).unwrap();
    assert_eq!(broken(&files), [""; 0]);
    let page = text(&files, "ops/plus.html");
    assert_parts(&page, &["Another name of add.Tensor, an operator of a library that this one builds on."]);
    assert_parts(&page, &["Not executed: this site was generated without results of a test run."]);
}

/// An operator's page shows its computation: the expression, the composition, or the formula of its entry.
#[test]
fn every_public_operator_has_a_formula() {
    let (checked, _) = stock();
    let model = &checked.model;
    let returns = |op: &Op| !op.outputs.is_empty();
    let without =
        public(&model.ops).filter(|(op, meant)| returns(meant) && typeset::definition(model, op).is_none());
    let without: Vec<String> = without.map(|(op, _)| format!("{} ({})", op.name, op.location)).collect();
    assert!(
        without.is_empty(),
        "{} operators have no formula; give their entries the key `formula`:\n{}",
        without.len(),
        without.join("\n")
    );
    // On the page, in words and in the export.
    let page = text(stock_site(), "ops/cumsum.html");
    assert_parts(&page, &["Definition [formula]"]);
    let file = stock_site().iter().find(|file| file.path == "everything.json").expect("all of the site");
    assert!(file.text.contains("y_{…, i, …} = Σ_{k=0}^i self_{…, k, …}"), "the formula is in the export");
    let op = model.ops.iter().find(|op| op.name == "layer_norm").expect("a stock operator");
    let words = emit::words(op, model).definition;
    assert!(
        words.starts_with("formula:\n  `y_{b, i} = ") && words.contains("in terms of other operators: "),
        "{words}"
    );
}

/// A formula that reads an argument which may be absent, where no case decides, has a line with its value then.
#[test]
fn formulas_say_the_values_of_absent_arguments() {
    let (checked, _) = stock();
    let mut wrong = Vec::new();
    for op in &checked.model.ops {
        let lines = op.facts.formula.iter().flat_map(|formula| &formula.lines);
        let mut read = Vec::new();
        lines.clone().for_each(|line| arguments_outside_cases(&line.node, &mut read));
        read.sort_unstable();
        read.dedup();
        for arg in read.into_iter().map(|index| &op.args[index]).filter(|arg| arg.ty.optional) {
            let says = |text: &str| ["absent", "given", "without"].iter().any(|word| text.contains(word));
            if !lines.clone().any(|line| line.text.contains(arg.name.as_str()) && says(&line.text)) {
                wrong.push(format!("{} ({}): `{}`", op.name, op.location, arg.name));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "formulas do not say the values of arguments that are absent; add `{{eps}} = 0 \"if it is absent\"`:\n{}",
        wrong.join("\n")
    );
}

fn arguments_outside_cases(node: &FormulaNode, found: &mut Vec<usize>) {
    let mut all = |nodes: &[&FormulaNode]| nodes.iter().for_each(|node| arguments_outside_cases(node, found));
    match node {
        FormulaNode::Argument(index) => found.push(*index),
        FormulaNode::Script(base, marks) | FormulaNode::Over(_, marks, base) => {
            let marks = marks.below.iter().chain(&marks.above);
            all(&marks.chain([base]).map(|part| &**part).collect::<Vec<_>>());
        }
        FormulaNode::Call(base, items) => {
            all(&[base]);
            all(&items.iter().collect::<Vec<_>>());
        }
        FormulaNode::Fence(_, items, _) | FormulaNode::Row(items) | FormulaNode::List(items) => {
            all(&items.iter().collect::<Vec<_>>());
        }
        FormulaNode::Root(inner) | FormulaNode::Negative(inner) | FormulaNode::Not(inner) => all(&[inner]),
        FormulaNode::Infix(left, _, right) | FormulaNode::Product(left, right) => all(&[left, right]),
        FormulaNode::Relation(first, rest) => {
            all(&[first]);
            all(&rest.iter().map(|(_, operand)| operand).collect::<Vec<_>>());
        }
        FormulaNode::Cases(_)
        | FormulaNode::Result(_)
        | FormulaNode::Name(_)
        | FormulaNode::Number(_)
        | FormulaNode::Words(_)
        | FormulaNode::All
        | FormulaNode::Ellipsis => {}
    }
}
