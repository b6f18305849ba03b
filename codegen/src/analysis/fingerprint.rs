//! The fingerprint of a spec: equal for equal entries, wherever they stand.
//!
//! In: the model. Out: a number, which the generated library has as well, so that recorded results of a library can be
//! compared with a spec. Comments, order inside an entry, lines of a file and parent libraries do not count. Nothing in
//! it depends on the configuration.

use std::fmt::Write;

use crate::expr::print::print;
use crate::model::expr::Expr;
use crate::model::{Infer, Model, Op};

/// The fingerprint of the operators and scalar functions that the spec itself declares.
pub fn fingerprint(model: &Model) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for function in model.functions.iter().filter(|function| !function.is_external()) {
        let (name, params, rust) = (&function.name, &function.params, &function.rust);
        hash.add(&format!("{name} {params:?} {rust} {:?} {:?}", function.derivatives, function.wirtinger));
    }
    for op in model.ops.iter().filter(|op| !op.is_external()) {
        hash.add(&text(op, model));
    }
    hash.0
}

/// Fowler, Noll and Vo's hash of 64 bits, which is the same on every machine and in every version of Rust.
struct Hash(u64);

impl Hash {
    fn add(&mut self, text: &str) {
        // A byte that no text has separates texts.
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The entry of an operator, as far as results or documents depend on it.
fn text(op: &Op, model: &Model) -> String {
    let mut text = format!("{}\n{}\n{:?}\n{:?}\n", op.signature, op.doc, op.forms, op.facts);
    let mut line = |name: &str, value: &dyn std::fmt::Debug| {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name} {value:?}");
    };
    let expression = |expr: &Expr| print(expr, op, model);
    for arg in &op.args {
        line("argument", &(&arg.doc, &arg.constraints, arg.element, arg.contiguous, arg.rounded, arg.number));
    }
    op.checks.iter().for_each(|check| line("check", &check.text));
    if let Some(Infer { length, shapes, dtypes, compute, function, run_sizes, run_shapes }) = &op.infer {
        let all = length.iter().chain(shapes).chain(dtypes).chain([compute]).chain(run_shapes);
        line(
            "inference",
            &all.chain(run_sizes.iter().map(|(_, bound)| bound)).map(expression).collect::<Vec<_>>(),
        );
        line("function", function);
    }
    line("combinations", &op.combinations);
    line("element", &op.body.pointwise.as_ref().map(expression));
    line("composition", &op.body.composite.as_ref().map(expression));
    line("kernels", &op.body.kernels.iter().map(|kernel| &kernel.text).collect::<Vec<_>>());
    line("others", &(&op.body.view, &op.body.host, op.body.dtypes[opsmith_core::Backend::Cpu.index()]));
    for derivative in &op.derivatives {
        line("derivative", &(&derivative.arguments, expression(&derivative.formula)));
    }
    op.samples.iter().for_each(|sample| line("sample", &sample.text));
    line("tolerances", &op.tolerances);
    text
}
