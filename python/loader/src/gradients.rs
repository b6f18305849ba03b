//! Gradients and tangents by the formulas of a loaded spec.
//!
//! In: saved values of a call, and gradients of its results or tangents of its arguments. Out: those of its arguments or
//! results. The function of a formula has no data, so that there is one for each position of a formula in its operator.

use std::collections::HashMap;

use opsmith_codegen::analysis::reads::{ReadValue, Reads, reads};
use opsmith_codegen::analysis::rows::defines_gradients;
use opsmith_codegen::model::expr::{Expr, ExprKind, Variable};
use opsmith_codegen::model::{Derivative, Forward as Tangents, Kind, Op, Output};
use opsmith_core::MAX_ARGUMENTS;
use opsmith_runtime::arg::Value;
use opsmith_runtime::autograd::{ForwardContext, GradContext, Gradient, TensorMeta};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::GradientInternals as _;
use opsmith_runtime::op::{Forward, GradDef, GradientFormula, Gradients, bits};

use crate::evaluate::{Evaluation, Names, unknown};
use crate::item::{Item, defect};
use crate::operator::Operator;

/// The derivative of an operator; `None` if it has none, or that of its composition.
pub fn definition(op: &Op) -> Option<&'static GradDef> {
    if !defines_gradients(op) {
        return None;
    }
    let formulas: Vec<GradientFormula> =
        op.derivatives.iter().enumerate().map(|(index, derivative)| formula(op, index, derivative)).collect();
    let chosen = |wanted: &dyn Fn(&Output) -> bool| {
        let found = op.outputs.iter().enumerate().filter(|(_, output)| wanted(output));
        found.fold(0u64, |set, (index, _)| set | 1 << index)
    };
    let forward = match &op.forward {
        Tangents::Linear => Forward::Linear,
        Tangents::ElementWise { declared } => Forward::ElementWise { complex: *declared },
        Tangents::Formulas(_) => Forward::Formula(forward),
        _ => Forward::Transposed,
    };
    Some(Box::leak(Box::new(GradDef {
        formulas: formulas.leak(),
        differentiable_outputs: chosen(&|output| output.ty.holds_tensors() && output.differentiable),
        constant_outputs: chosen(&|output| output.constant),
        non_differentiable: op.non_differentiable.iter().fold(0, |set, index| set | 1 << index),
        forward,
    })))
}

fn formula(op: &Op, index: usize, derivative: &Derivative) -> GradientFormula {
    let read = reads(&derivative.formula);
    let chosen = |wanted: &dyn Fn(&ReadValue) -> Option<usize>| {
        let found: Vec<u32> = read.values.iter().filter_map(wanted).map(|at| at as u32).collect();
        bits(&found)
    };
    let holds_tensors = |index: usize| op.args[index].ty.holds_tensors();
    GradientFormula {
        arguments: derivative.arguments.iter().map(|index| *index as u8).collect::<Vec<u8>>().leak(),
        reads_arguments: chosen(&|place| match place {
            ReadValue::Arg(index) if holds_tensors(*index) => Some(*index),
            _ => None,
        }),
        reads_outputs: chosen(&|place| match place {
            ReadValue::Result(index) => Some(*index),
            ReadValue::Arg(_) => None,
        }),
        reads_attributes: chosen(&|place| match place {
            ReadValue::Arg(index) if !holds_tensors(*index) => Some(*index),
            _ => None,
        }),
        backends: derivative.backends.0,
        backward: BACKWARD[index],
    }
}

type Backward = fn(&GradContext<'_>) -> Result<Gradients>;

/// The functions of formulas, by their position in an operator: at most one formula is for each argument and backend.
static BACKWARD: [Backward; 2 * MAX_ARGUMENTS] = {
    macro_rules! functions {
        ($($index:literal)*) => { [$(|context| backward(context, $index)),*] };
    }
    functions!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
        16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
        48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
        64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79
        80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95
        96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111
        112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127
    )
};

/// The gradients of a formula's arguments.
fn backward(context: &GradContext<'_>, index: usize) -> Result<Gradients> {
    let operator = Operator::of(context.op())?;
    let op = operator.op();
    let derivative = &op.derivatives[index];
    let count = derivative.arguments.len();
    let read = reads(&derivative.formula);
    let optional = optional_gradients(&derivative.formula);
    if read.grads.iter().any(|output| !optional.contains(output) && context.grad(*output).is_none()) {
        return Ok(Gradient::none(count));
    }
    let names = Saved::of(context, op, derivative, &read)?;
    let value = Evaluation::new(operator.spec, &names).value(&derivative.formula)?;
    match (count, value) {
        (1, value) => Ok(Gradient::one(gradient(value)?)),
        (_, Item::Several(items)) => items.into_iter().map(gradient).collect(),
        (_, other) => Err(defect("several gradients", &other)),
    }
}

fn gradient(item: Item) -> Result<Gradient> {
    Ok(match item.one()? {
        Value::None => Gradient::None,
        Value::Tensor(tensor) => Gradient::Tensor(tensor),
        Value::Tensors(list) => list.into(),
        Value::OptionalTensors(list) => list.into(),
        other => return Err(defect("a gradient", &other.into())),
    })
}

/// The gradients that a formula takes as possibly absent.
fn optional_gradients(formula: &Expr) -> Vec<usize> {
    let mut found = Vec::new();
    formula.walk(&mut |part| {
        if let ExprKind::Variable(Variable::Grad(index)) = part.kind
            && part.ty.optional
        {
            found.push(index);
        }
    });
    found
}

/// The names of a backward formula.
struct Saved<'a> {
    context: &'a GradContext<'a>,
    op: &'a Op,
    values: HashMap<Variable, Item>,
}

impl<'a> Saved<'a> {
    /// Each saved value is restored once.
    fn of(
        context: &'a GradContext<'a>,
        op: &'a Op,
        derivative: &Derivative,
        read: &Reads,
    ) -> Result<Saved<'a>> {
        let absent = |tensor: Option<opsmith_runtime::Tensor>| tensor.map_or(Value::None, Value::Tensor);
        let mut values: HashMap<Variable, Item> = HashMap::new();
        for &output in &read.grads {
            values.insert(Variable::Grad(output), absent(context.grad(output).cloned()).into());
        }
        if read.all_grads {
            values.insert(Variable::Grads, Value::OptionalTensors(context.grads().to_vec()).into());
        }
        if read.mask {
            let wanted = derivative.arguments.iter().map(|index| context.needs(*index)).collect();
            values.insert(Variable::GradInputMask, Value::Bools(wanted).into());
        }
        for place in &read.values {
            let (variable, value) = match *place {
                ReadValue::Arg(index) => {
                    let ty = &op.args[index].ty;
                    let value = match (&ty.kind, ty.optional) {
                        (Kind::Tensor, false) => Value::Tensor(context.tensor(index)?),
                        (Kind::Tensor, true) => absent(context.optional_tensor(index)?),
                        (Kind::Tensors, _) => Value::Tensors(context.tensors(index)?),
                        (Kind::OptionalTensors, _) => {
                            Value::OptionalTensors(context.optional_tensors(index)?)
                        }
                        _ => context.attribute(index).to_value(),
                    };
                    (Variable::Arg(index), value)
                }
                ReadValue::Result(index) => {
                    let value = match op.outputs[index].ty.kind {
                        Kind::Tensors => Value::Tensors(context.results()?),
                        _ => Value::Tensor(context.result(index)?),
                    };
                    (Variable::Result(index), value)
                }
            };
            values.insert(variable, value.into());
        }
        Ok(Saved { context, op, values })
    }
}

impl Names for Saved<'_> {
    fn value(&self, variable: &Variable) -> Result<Item> {
        self.values.get(variable).cloned().ok_or_else(|| unknown(variable))
    }

    fn meta(&self, variable: &Variable) -> Option<TensorMeta> {
        match variable {
            Variable::Arg(index) if self.op.args[*index].ty.is_tensor() => {
                Some(self.context.meta(*index).clone())
            }
            Variable::Result(index) if self.op.outputs[*index].ty.is_tensor() => {
                Some(self.context.result_meta(*index).clone())
            }
            _ => None,
        }
    }

    fn metas(&self, variable: &Variable) -> Option<Vec<TensorMeta>> {
        match variable {
            Variable::Arg(index) if self.op.args[*index].ty.kind == Kind::Tensors => {
                Some(self.context.metas(*index).to_vec())
            }
            _ => None,
        }
    }
}

/// The tangents of results by the spec's formulas.
fn forward(context: &ForwardContext<'_>) -> Result<opsmith_runtime::op::Tangents> {
    let operator = Operator::of(context.op())?;
    let op = operator.op();
    let Tangents::Formulas(formulas) = &op.forward else {
        return Err(Error::autograd(format!("`{}` has no formulas of tangents", op.name)));
    };
    let mut tangents = opsmith_runtime::op::Tangents::from_elem(None, op.outputs.len());
    let names = Moving { context, op };
    for formula in formulas {
        for term in &formula.terms {
            let mut read = Vec::new();
            term.walk(&mut |part| {
                if let ExprKind::Variable(Variable::Tangent(index)) = part.kind {
                    read.push(index);
                }
            });
            if context.any(&read) {
                let part = Evaluation::new(operator.spec, &names).value(term)?.tensor()?;
                context.add(&mut tangents[formula.output], part)?;
            }
        }
    }
    Ok(tangents)
}

/// The names of a formula of tangents.
struct Moving<'a> {
    context: &'a ForwardContext<'a>,
    op: &'a Op,
}

impl Names for Moving<'_> {
    fn value(&self, variable: &Variable) -> Result<Item> {
        Ok(Item::One(match variable {
            Variable::Arg(index) => self.context.args()[*index].to_value(),
            Variable::Tangent(index) if self.op.args[*index].ty.kind == Kind::Tensor => {
                Value::Tensor(self.context.tangent(*index)?)
            }
            Variable::Tangent(index) => Value::Tensors(self.context.tangents(*index)?),
            Variable::Result(index) => Value::Tensor(self.context.result(*index)?),
            other => return Err(unknown(other)),
        }))
    }
}
