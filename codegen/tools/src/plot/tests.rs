//! Values and slopes of the stock operators against each other and against known numbers.

use std::path::Path;

use opsmith_codegen::config::Config;
use opsmith_codegen::pipeline;
use opsmith_core::{Check, ToleranceOf};

use super::*;

fn stock() -> Model {
    let config = Config::stock(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops.yaml"));
    pipeline::check(&config).expect("the stock spec can be read").model
}

/// The slope of every operator that has a plot is the difference of its values, wherever these are smooth, but of those whose entry
/// says that the gradient is another by definition.
#[test]
fn slopes_are_differences_of_values() {
    let model = stock();
    let (mut compared, mut wrong) = (0, Vec::new());
    let is_declared_other = |op: &&Op| {
        op.tolerances.iter().any(|row| row.of == ToleranceOf::Check(Check::Gradient) && row.allow.is_none())
    };
    for op in model.ops.iter().filter(|op| op.alias_of.is_none() && !is_declared_other(op)) {
        let (Ok(settings), Plot::Svg(_)) = (settings(op), plot(&model, op)) else { continue };
        let Some(formula) = formula(op, settings.axis) else { continue };
        for x in [-2.3, -0.71, 0.37, 0.83, 1.9] {
            let at = |x: f64| value(&model, op, settings.axis, &settings.values, x);
            let step = 1e-5;
            let (Some(low), Some(middle), Some(high)) = (at(x - step), at(x), at(x + step)) else { continue };
            let (left, right) = ((middle - low) / step, (high - middle) / step);
            let Some(slope) = slope(&model, op, formula, settings.axis, &settings.values, x) else {
                continue;
            };
            // A corner, or a pole.
            let is_smooth = (left - right).abs() <= 1e-2 * (1.0 + left.abs()) && left.is_finite();
            if is_smooth {
                compared += 1;
                if (slope - (left + right) / 2.0).abs() > 1e-3 * (1.0 + slope.abs()) {
                    wrong.push(format!("{} at {x}: {slope}, but {left} and {right}", op.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} slopes:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 150, "only {compared} slopes were compared");
}

fn spec(text: &str) -> Model {
    let checked = pipeline::check_text("spec.yaml", text);
    assert_eq!(checked.diagnostics.error_count(), 0, "{:?}", checked.diagnostics);
    checked.model
}

const POLE: &str = "edition: 1\nops:\n- func: f(Tensor x, Scalar width) -> Tensor\n  doc: F.\n  dtype: promote_float(x, width)\n  \
    dtypes: floating\n  pointwise: \"if x < 3 { width / x } else { 1 }\"\n  derivatives: {x: None}\n  \
    samples: [{x: \"spread(2)\", width: 2}, {x: \"spread(2)\", width: -1}]\n";

/// The curves are in pieces at a pole and at a jump, one curve for each value in the samples.
#[test]
fn poles_and_jumps_are_not_joined() {
    let model = spec(POLE);
    let op = &model.ops[0];
    let found = settings(op).expect("a function of one number");
    assert_eq!((found.axis, found.varied.as_ref()), (0, Some(&(1, vec![2.0, -1.0]))));
    let functions = &mut functions(&model, op, &found).expect("it has values");
    let labels: Vec<&str> = functions.iter().map(|function| function.label.as_str()).collect();
    assert_eq!(labels, ["y, width = 2", "y, width = -1"]);
    let range = domain(&mut functions[0].value).expect("it has values");
    let pieces = pieces(&mut functions[0].value, range, Range { low: -5.0, high: 5.0 });
    assert_eq!(pieces.len(), 3, "{pieces:?}");
    assert!(
        pieces[0].iter().all(|(x, _)| *x <= 0.0) && pieces[1].iter().all(|(x, _)| (0.0..=3.001).contains(x))
    );
    let Plot::Svg(svg) = plot(&model, op) else { panic!("it has a plot") };
    assert!(svg.contains("for width = 2, -1."), "{svg}");
}

/// An expression that calls itself without end, or unknown functions, is a reason.
#[test]
fn reasons_are_told() {
    let head = "edition: 1\nfunctions:\n- {func: swell(x), rust: mine::swell, dtypes: floating}\nops:\n";
    for (entry, reason) in [
        (
            "- {func: f(Tensor x) -> Tensor, doc: F., dtype: follow(x), dtypes: floating, pointwise: swell(x), derivatives: {x: None}}",
            "the value of the function `swell` is not known here",
        ),
        (
            "- {func: f(Tensor x) -> Tensor, doc: F., decompose: x}",
            "its elements are those of its argument, or all alike",
        ),
        (
            "- {func: f(Tensor x) -> Tensor, doc: F., decompose: \"if x.size(0) == 1 { x } else { f(x) }\"}",
            "it depends on sizes",
        ),
        (
            "- {func: f(Tensor x) -> Tensor, doc: F., decompose: \"if x.dim() == 1 { x } else { f(x) }\"}",
            "it depends on sizes",
        ),
        (
            "- {func: \"f(Tensor x, bool b=True) -> Tensor\", doc: F., decompose: \"if b { f(x) } else { x }\"}",
            "it calls `f`, which has no expression",
        ),
        (
            "- {func: \"f(Tensor x, Tensor[] y) -> Tensor\", doc: F., decompose: x}",
            "it is a function of 2 tensors or of lists of them",
        ),
    ] {
        let model = spec(&format!("{head}{entry}\n"));
        match plot(&model, &model.ops[0]) {
            Plot::None(why) => assert_eq!(why.to_string(), reason, "{entry}"),
            Plot::Svg(_) => panic!("{entry} has a plot"),
        }
    }
}
