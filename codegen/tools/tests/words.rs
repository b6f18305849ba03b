//! The words about the stock operators: rules and conditions speak of an operator's own arguments.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use opsmith_codegen::model::expr::QUERIES;
use opsmith_codegen::model::{Model, Op};
use opsmith_codegen::{Config, emit, pipeline};
use opsmith_core::DType;
use opsmith_core::rules::{DTYPE_RULES, SHAPE_RULES};

static STOCK: LazyLock<Model> = LazyLock::new(|| {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops.yaml");
    let config = Config::stock(spec.canonicalize().expect("the spec is there"));
    let mut checked = pipeline::check(&config).expect("the spec can be read");
    pipeline::find_functions(&mut checked, &config);
    checked.model
});

fn op(name: &str) -> &'static Op {
    STOCK.ops.iter().find(|op| op.name == name).unwrap_or_else(|| panic!("no operator {name}"))
}

/// Shape and dtype of the only or first result.
fn rules(name: &str) -> [String; 2] {
    let words = emit::rules_of_results(op(name), &STOCK).remove(0);
    [words.shape, words.dtype]
}

/// The words in the code of a text: not those in strings, and not the paths of functions.
fn names(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for code in text.split('`').skip(1).step_by(2) {
        let outside: String = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.');
        for word in outside.split(|c| !is_part(c)).filter(|word| !word.contains("::")) {
            let parts =
                word.split('.').filter(|part| part.starts_with(|c: char| c.is_alphabetic() || c == '_'));
            // The name of an overload is one name.
            match STOCK.ops.iter().any(|op| op.name == word) {
                true => found.push(word.to_owned()),
                false => found.extend(parts.map(str::to_owned)),
            }
        }
    }
    found
}

#[test]
fn rules_and_conditions_name_nothing_but_arguments_and_words_of_specs() {
    let mut known: BTreeSet<&str> = ["if", "else", "true", "false", "None", "inf"].into();
    known.extend(SHAPE_RULES.iter().chain(DTYPE_RULES).map(|rule| rule.name()));
    known.extend(QUERIES.iter().map(|query| query.name));
    known.extend(DType::ALL.iter().map(|dtype| dtype.name()));
    known.extend(STOCK.ops.iter().flat_map(|op| [op.name.as_str(), op.base.as_str()]));
    let mut wrong = Vec::new();
    for op in STOCK.ops.iter().filter(|op| op.alias_of.is_none()) {
        let mut own: BTreeSet<&str> = op.args.iter().map(|arg| arg.name.as_str()).collect();
        // Names of sizes that elements decide, and the number of each tensor of a list.
        let infer = op.infer.iter();
        own.extend(infer.clone().flat_map(|infer| infer.run_sizes.iter().map(|(name, _)| name.as_str())));
        if op.outputs.iter().any(|output| output.ty.is_list()) {
            own.insert(opsmith_codegen::model::POSITION);
        }
        let rules = emit::rules_of_results(op, &STOCK);
        let mut texts: Vec<String> = rules.into_iter().flat_map(|rule| [rule.shape, rule.dtype]).collect();
        texts.extend(emit::errors_in_words(op, &STOCK));
        for text in texts {
            let strange: Vec<String> = names(&text)
                .into_iter()
                .filter(|name| !known.contains(name.as_str()) && !own.contains(name.as_str()))
                .collect();
            if !strange.is_empty() {
                wrong.push(format!("{}: {strange:?}: {text}", op.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rules_of_compositions_are_told_in_their_own_arguments() {
    let like = ["that of `self`", "`dtype` if it is given, else that of `self`"];
    for name in ["zeros_like", "ones_like", "empty_like", "full_like", "randint_like"] {
        assert_eq!(rules(name), like, "{name}");
    }
    assert_eq!(rules("new_zeros")[1], like[1]);
    let promoted = "`promote(self, 2)` (the operands' promoted dtype)";
    assert_eq!(rules("square"), ["that of `self`", promoted]);
    assert_eq!(rules("to.dtype"), ["that of `self`", "`dtype`"]);
    assert_eq!(rules("any")[1], "`uint8` if `self.dtype() == uint8`, else `bool`");
    assert_eq!(rules("exponential"), ["that of `self`", "that of `self`"]);
    assert_eq!(rules("glu")[1], "that of `self`");
    assert_eq!(rules("conv2d")[1].matches("same(input, weight)").count(), 1);
    assert_eq!(rules("linalg_vecdot")[1], "that of `y`");
    assert!(rules("index_reduce")[1].starts_with("`same(self, source)`"));
    assert_eq!(rules("vstack")[0], "as `cat` gives it for the arguments of its call");
}

#[test]
fn rules_by_functions_have_the_words_of_their_documentation() {
    assert_eq!(
        rules("topk")[0],
        "`infer::topk(self, k, dim)` (`self`'s shape with `k` elements along `dim`)"
    );
    let slices = "as `views::narrow` gives it: `length` slices along `dim`, from `start` on";
    assert_eq!(rules("narrow")[0], slices);
    let wordless: Vec<&str> = STOCK
        .ops
        .iter()
        .filter(|op| op.alias_of.is_none())
        .filter(|op| {
            let rules = emit::rules_of_results(op, &STOCK);
            rules.iter().any(|rule| rule.shape.contains("function `") && rule.shape.contains("` says"))
        })
        .map(|op| op.name.as_str())
        .collect();
    assert!(wordless.is_empty(), "no words for the shapes of {wordless:?}");
}

#[test]
fn errors_of_compositions_are_those_of_the_operators_that_they_call() {
    let errors = |name: &str| emit::errors_in_words(op(name), &STOCK);
    let solve = errors("linalg_solve");
    for line in ["unless `A.dim() >= 2`", "unless `A.size(-2) == A.size(-1)`", "unless `B.dim() >= 1`"] {
        assert!(solve.contains(&line.to_owned()), "no {line} in {solve:#?}");
    }
    let dropout = errors("dropout");
    let of_p = dropout.iter().filter(|line| line.contains("`p` is not")).count();
    assert_eq!(of_p, 1, "{dropout:#?}");
    assert_eq!(errors("zeros_like"), ["if `pin_memory.unwrap_or(false)`"]);
    // Either branch of a composition calls with the same dtypes.
    let same = "unless `input.dtype() == weight.dtype()`".to_owned();
    assert!(errors("conv2d").contains(&same), "{:#?}", errors("conv2d"));
    assert!(errors("vstack").contains(&"unless `tensors.len() > 0`".to_owned()));
    for op in STOCK.ops.iter().filter(|op| op.body.composite.is_some()) {
        let lines = emit::errors_in_words(op, &STOCK);
        let distinct: BTreeSet<&String> = lines.iter().collect();
        assert_eq!(distinct.len(), lines.len(), "{}: {lines:#?}", op.name);
    }
}
