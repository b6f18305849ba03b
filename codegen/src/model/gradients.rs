//! How gradients and tangents flow through an operator.
//!
//! In: `derivatives` and `forward`, checked by `lower`. Out: plain data, and where each of an
//! operator's derivatives comes from, which `explain` and `coverage` show.

use opsmith_core::Backend;

use super::{Kind, NumberUse, Op};
use crate::model::expr::{Expr, ExprKind, Variable};

/// A backward formula.
#[derive(Clone, Debug)]
pub struct Derivative {
    /// The arguments it gives gradients of.
    pub arguments: Vec<usize>,
    /// The formula.
    pub formula: Expr,
    /// As written.
    pub text: String,
    /// The backends it is for.
    pub backends: Backends,
    /// Whether it was derived from the pointwise expression.
    pub derived: bool,
}

/// A set of backends, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backends(pub u8);

impl Backends {
    /// All of them.
    pub const ALL: Backends = Backends(((1u16 << Backend::COUNT) - 1) as u8);

    /// One of them.
    pub fn only(backend: Backend) -> Backends {
        Backends(1 << backend.index())
    }

    /// Those of this set that are not in another.
    #[must_use]
    pub fn without(self, other: Backends) -> Backends {
        Backends(self.0 & !other.0)
    }

    /// Whether a backend is in the set.
    pub fn contains(self, backend: Backend) -> bool {
        self.0 & (1 << backend.index()) != 0
    }
}

/// How tangents flow through an operator in forward mode.
#[derive(Clone, Default, Debug)]
pub enum Forward {
    /// They do not: it has no derivatives.
    #[default]
    None,
    /// The operator of the tangents is the tangent of the result.
    Linear,
    /// The backward formulas, applied to the tangents. If this was declared, that is right for complex
    /// numbers too; where it was found out, only for real ones.
    ElementWise {
        /// Whether the spec says so.
        declared: bool,
    },
    /// Formulas of the spec.
    Formulas(Vec<ForwardFormula>),
    /// The operators of the composition.
    Composition,
    /// A view of the tangent.
    View,
    /// The transpose of the backward formulas, which are linear in `grad`.
    Transposed,
}

/// The tangent of one output.
#[derive(Clone, Debug)]
pub struct ForwardFormula {
    /// The output.
    pub output: usize,
    /// The summands; each is linear in the tangents it reads, and left out if none of them is there.
    pub terms: Vec<Expr>,
    /// As written.
    pub text: String,
}

/// Where an operator's gradients come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GradientSource {
    /// Nowhere: nothing flows.
    None,
    /// From the spec.
    Written,
    /// From the pointwise expression.
    Derived,
    /// From the operators of the composition.
    Composition,
    /// From the layout of the view.
    View,
}

impl GradientSource {
    /// In a word, for tables; empty if there are none.
    pub fn word(self) -> &'static str {
        match self {
            GradientSource::None => "",
            GradientSource::Written => "written",
            GradientSource::Derived => "derived",
            GradientSource::Composition => "composition",
            GradientSource::View => "view",
        }
    }
}

impl Forward {
    /// In a word, for tables; empty if there is none.
    pub fn word(&self) -> &'static str {
        match self {
            Forward::None => "",
            Forward::Linear => "auto_linear",
            Forward::ElementWise { .. } => "auto_element_wise",
            Forward::Formulas(_) => "written",
            Forward::Composition => "composition",
            Forward::View => "view",
            Forward::Transposed => "transposed",
        }
    }
}

impl Op {
    /// The relation of an argument to the elements of the result, if it is a number. One that the rule of the dtype
    /// mentions is promoted with them; elements are computed with any other.
    pub fn number_use(&self, index: usize) -> Option<NumberUse> {
        let arg = &self.args[index];
        if arg.ty.kind != Kind::Scalar {
            return None;
        }
        let promoted = || {
            let mut found = false;
            let rules = self.infer.iter().flat_map(|infer| infer.dtypes.iter().chain([&infer.compute]));
            rules.for_each(|rule| {
                rule.walk(&mut |part| {
                    found |= matches!(part.kind, ExprKind::Variable(Variable::Arg(other)) if other == index);
                });
            });
            found
        };
        Some(arg.number.unwrap_or_else(|| if promoted() { NumberUse::Free } else { NumberUse::Computed }))
    }

    /// Whether the spec says that no gradient flows, of every tensor argument that it mentions.
    pub fn refuses_gradients(&self) -> bool {
        self.derivatives.is_empty() && !self.non_differentiable.is_empty()
    }

    /// The name of a result in formulas: its own, `result`, or `result0`.
    pub fn result_name(&self, index: usize) -> String {
        match &self.outputs[index].name {
            Some(name) => name.clone(),
            None if self.outputs.len() == 1 => "result".to_owned(),
            None => format!("result{index}"),
        }
    }

    /// Where the operator's gradients come from.
    pub fn gradient_source(&self) -> GradientSource {
        let takes_tensors = self.args.iter().any(|arg| arg.ty.holds_tensors());
        let gives_tensors = self.outputs.iter().any(|output| output.ty.holds_tensors());
        // A formula that only refuses belongs to an argument without a gradient.
        let refuses = |derivative: &Derivative| {
            derivative.derived && matches!(derivative.formula.kind, ExprKind::NotImplemented(_))
        };
        match &self.derivatives[..] {
            all @ [_, ..] if all.iter().all(refuses) => GradientSource::None,
            [first, ..] if first.derived => GradientSource::Derived,
            [_, ..] => GradientSource::Written,
            [] if self.refuses_gradients() || !takes_tensors || !gives_tensors => GradientSource::None,
            [] if self.body.composite.is_some() => GradientSource::Composition,
            [] if self.body.view.is_some() => GradientSource::View,
            [] => GradientSource::None,
        }
    }
}
