//! Formulas of chosen expressions against recorded ones, and of random expressions against their values, which a reader
//! computes from the signs of the formula.

#[path = "typeset/reader.rs"]
mod reader;

use std::fmt::Write;
use std::path::Path;

use opsmith_codegen::emit;
use opsmith_codegen::model::Model;
use opsmith_codegen::pipeline::check_text;
use opsmith_tools::typeset;
use proptest::prelude::*;

fn model(text: &str) -> Model {
    let checked = check_text("spec.yaml", text);
    assert_eq!(checked.diagnostics.error_count(), 0, "{:?}", checked.diagnostics);
    checked.model
}

#[test]
fn formulas_are_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/typeset");
    let model = model(&std::fs::read_to_string(folder.join("spec.yaml")).unwrap());
    let mut text = String::from("<formulas>\n");
    for op in &model.ops {
        let mut line = |what: &str, math: Option<String>| {
            let _ = writeln!(
                text,
                "<formula of=\"{}\" what=\"{what}\">{}</formula>",
                op.name,
                math.unwrap_or_default()
            );
        };
        line("definition", typeset::definition(&model, op));
        for formula in typeset::derivatives(&model, op) {
            line(
                &format!("gradient of {}, saved {}", formula.argument, formula.saved.join(" ")),
                formula.math,
            );
        }
        for shape in typeset::shapes(&model, op).into_iter().filter(Option::is_some) {
            line("shape", shape);
        }
    }
    text.push_str("</formulas>\n");
    let file = folder.join("formulas.xml");
    if std::env::var_os("OPSMITH_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    let differing = text.lines().zip(recorded.lines()).find(|(found, recorded)| found != recorded);
    assert!(
        text == recorded,
        "the formulas are not the recorded ones, first {differing:#?}; OPSMITH_BLESS=1 cargo test -p opsmith-tools --test \
         typeset records them anew"
    );
}

#[test]
fn rules_of_compositions_are_told_in_their_own_arguments() {
    let model = model(
        "edition: 1\nops:\n- {func: f(Tensor x) -> Tensor, doc: F., pointwise: x}\n\
         - {func: g(Tensor y) -> Tensor, doc: G., decompose: f(f(y))}\n\
         - {func: \"h(Tensor z, bool b) -> Tensor\", doc: H., decompose: \"if b { let twice = g(z); twice } else { z }\"}\n",
    );
    let of = |name: &str| {
        let op = model.ops.iter().find(|op| op.name == name).unwrap();
        emit::rules_of_results(op, &model).remove(0)
    };
    for (name, argument) in [("g", "y"), ("h", "z")] {
        let words = of(name);
        assert_eq!([words.shape, words.dtype], [(); 2].map(|()| format!("that of `{argument}`")), "{name}");
    }
}

#[test]
fn words_and_sources_stand_beside_formulas() {
    let model = model(
        "edition: 1\nops:\n- func: f(Tensor x, int n) -> (Tensor, Tensor)\n  doc: F.\n  shape: [follow(x), \"[n, x.size(1)]\"]\n  \
         dtype: [follow(x), int64]\n  dispatch: {CPU: k::f}\n  derivatives: {x: opaque(\"a & b\")}\n",
    );
    let op = &model.ops[0];
    let shapes = typeset::shapes(&model, op);
    assert!(shapes.iter().all(|math| math.as_ref().unwrap().contains("shape")), "{shapes:?}");
    assert!(shapes[1].as_ref().unwrap().contains("size"), "{shapes:?}");
    let rules = emit::rules_of_results(op, &model);
    let words: Vec<[&str; 2]> = rules.iter().map(|rule| [&*rule.shape, &*rule.dtype]).collect();
    assert_eq!(
        words,
        [
            ["`follow(x)` (the shape of the given input)", "`follow(x)` (the dtype of the given input)"],
            ["`[n, x.size(1)]` (2 dimensions: `n` by size 1 of `x`)", "`int64`"],
        ]
    );
    let formulas = typeset::derivatives(&model, op);
    assert_eq!((formulas[0].argument.as_str(), &formulas[0].math), ("x", &None));
    assert_eq!(formulas[0].source, "opaque(\"a & b\")");
    assert!(typeset::definition(&model, op).is_none());
}

#[test]
fn sizes_of_samples_are_formulas_and_damaged_ones_stay_text() {
    let text = |formula: &str| {
        let math = typeset::formula_of_size(formula);
        roxmltree::Document::parse(&math).unwrap_or_else(|error| panic!("{formula}: {error}"));
        let mut parts = math.split('<').filter_map(|part| part.split_once('>'));
        parts.by_ref().map(|(_, text)| text).collect::<String>()
    };
    assert_eq!(text("2*s0+1"), "2\u{2062}s0+1");
    assert_eq!(text("floor((s0+s1)/2)"), "⌊s0+s12⌋");
    assert_eq!(text("s0^2*s1-3"), "s02⋅s1−3");
    assert_eq!(text("s0 == s1 && (s2 >= 4 || s2 != 1)"), "s0=s1∧(s2≥4∨s2≠1)");
    assert_eq!(text("max(s0, ((s1)%(2)))"), "max\u{2061}(s0,s1mod2)");
    for damaged in ["", "s0+", "<script>", "floor(", "min(s0", "a b", &"(".repeat(10_000)] {
        assert_eq!(text(damaged), damaged.replace(' ', "\u{a0}").replace('<', "&lt;").replace('>', "&gt;"));
    }
}

/// A random expression of numbers: its text in a spec and its value.
#[derive(Clone, Debug)]
enum Tree {
    X,
    Other,
    Number(u8),
    Binary(char, Box<Tree>, Box<Tree>),
    Negative(Box<Tree>),
    Call(&'static str, Vec<Tree>),
    If(&'static str, Box<[Tree; 4]>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Tree::X => "x".to_owned(),
            Tree::Other => "weight_2".to_owned(),
            Tree::Number(value) => format!("{:?}", f64::from(*value) / 4.0),
            Tree::Binary(sign, a, b) => format!("({} {sign} {})", a.text(), b.text()),
            Tree::Negative(a) => format!("(-{})", a.text()),
            Tree::Call(name, args) => {
                format!("{name}({})", args.iter().map(Tree::text).collect::<Vec<_>>().join(", "))
            }
            Tree::If(sign, parts) => {
                let [a, b, yes, no] = &**parts;
                format!("(if {} {sign} {} {{ {} }} else {{ {} }})", a.text(), b.text(), yes.text(), no.text())
            }
        }
    }

    fn value(&self, x: f64, other: f64) -> f64 {
        let of = |tree: &Tree| tree.value(x, other);
        match self {
            Tree::X => x,
            Tree::Other => other,
            Tree::Number(value) => f64::from(*value) / 4.0,
            Tree::Binary('+', a, b) => of(a) + of(b),
            Tree::Binary('-', a, b) => of(a) - of(b),
            Tree::Binary('*', a, b) => of(a) * of(b),
            Tree::Binary(_, a, b) => of(a) / of(b),
            Tree::Negative(a) => -of(a),
            Tree::Call(name, args) => match (*name, of(&args[0])) {
                ("exp", a) => a.exp(),
                ("expm1", a) => a.exp() - 1.0,
                ("log1p", a) => (1.0 + a).ln(),
                ("sqrt", a) => a.sqrt(),
                ("rsqrt", a) => 1.0 / a.sqrt(),
                ("abs", a) => a.abs(),
                ("floor", a) => a.floor(),
                ("pow", a) => a.powf(of(&args[1])),
                (_, a) => (a / of(&args[1])).floor(),
            },
            Tree::If(sign, parts) => {
                let [a, b, yes, no] = &**parts;
                let holds = if *sign == "<" { of(a) < of(b) } else { of(a) >= of(b) };
                if holds { of(yes) } else { of(no) }
            }
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![Just(Tree::X), Just(Tree::Other), (0u8..12).prop_map(Tree::Number)];
    leaf.prop_recursive(5, 24, 4, |inner| {
        let pair = (inner.clone(), inner.clone());
        let signs = prop_oneof![Just('+'), Just('-'), Just('*'), Just('/')];
        let one = prop_oneof![
            Just("exp"),
            Just("expm1"),
            Just("log1p"),
            Just("sqrt"),
            Just("rsqrt"),
            Just("abs"),
            Just("floor")
        ];
        let two = prop_oneof![Just("pow"), Just("floor_div")];
        prop_oneof![
            4 => (signs, pair.clone()).prop_map(|(sign, (a, b))| Tree::Binary(sign, a.into(), b.into())),
            1 => inner.clone().prop_map(|a| Tree::Negative(a.into())),
            1 => (one, inner.clone()).prop_map(|(name, a)| Tree::Call(name, vec![a])),
            1 => (two, pair.clone()).prop_map(|(name, (a, b))| Tree::Call(name, vec![a, b])),
            1 => (prop_oneof![Just("<"), Just(">=")], pair.clone(), pair)
                .prop_map(|(sign, (a, b), (c, d))| Tree::If(sign, [a, b, c, d].into())),
        ]
    })
}

const HEAD: &str = "edition: 1\nfunctions:\n\
    - {func: exp(x), rust: math::exp, dtypes: inexact}\n- {func: expm1(x), rust: math::expm1, dtypes: inexact}\n\
    - {func: log1p(x), rust: math::log1p, dtypes: inexact}\n- {func: sqrt(x), rust: math::sqrt, dtypes: inexact}\n\
    - {func: rsqrt(x), rust: math::rsqrt, dtypes: inexact}\n- {func: abs(x) -> real, rust: math::abs, dtypes: numeric}\n\
    - {func: floor(x), rust: math::floor, dtypes: real_numeric}\n\
    - {func: \"pow(base, exponent)\", rust: math::pow, dtypes: numeric}\n\
    - {func: \"floor_div(a, b)\", rust: math::floor_div, dtypes: real_numeric}\nops:\n";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_reader_of_a_formula_computes_its_expression(tree in tree()) {
        let spec = format!(
            "{HEAD}- func: f(Tensor x, Tensor weight_2) -> Tensor\n  doc: F.\n  dtype: promote_float(x, weight_2)\n  \
             dtypes: floating\n  pointwise: \"{} + 0 * x\"\n  derivatives: {{x: None, weight_2: None}}\n",
            tree.text()
        );
        let model = model(&spec);
        let math = typeset::definition(&model, &model.ops[0]).unwrap();
        for (x, other) in [(0.7, 1.9), (-1.3, 0.4), (2.6, -0.8)] {
            let wanted = tree.value(x, other) + 0.0 * x;
            let found = reader::value(&math, &[("x", x), ("weight2", other)]);
            let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
            // Sums and products of three may be read in another order, which infinities show.
            let is_equal = near(found, wanted) || !found.is_finite() && !wanted.is_finite();
            prop_assert!(is_equal, "{} is {wanted}, but its formula {found}: {math}", tree.text());
        }
    }
}
