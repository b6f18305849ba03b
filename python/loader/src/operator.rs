//! A loaded operator: its entry, and the data that its calls need.
//!
//! In: a definition that the dispatcher gives to a kernel or a formula. Out: its operator. A definition leads to it by its
//! field for operators declared at run time.

use std::any::Any;
use std::sync::OnceLock;

use opsmith_aot::SpecKernel;
use opsmith_codegen::model::{Function, Kind, Op, OpId};
use opsmith_core::{Backend, DType};
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::generated::call::or_empty;
use opsmith_runtime::layout::Dims;
use opsmith_runtime::op::{CustomOp, Inferred, OpDef, Outputs};
use opsmith_runtime::{Tensor, checked};

use crate::evaluate::{Arguments, Evaluation};
use crate::infer;
use crate::item::{Item, defect};

/// The definition that a call in a formula means.
#[derive(Clone, Copy)]
pub struct Target {
    /// The definition.
    pub definition: &'static OpDef,
    /// Whether it gives the complex conjugate.
    pub conjugates: bool,
}

/// A loaded spec.
pub struct Spec {
    /// Its own entries.
    pub ops: Vec<Op>,
    /// The scalar functions that expressions call.
    pub functions: Vec<Function>,
    /// Whether it is the stock library's own.
    pub is_stock: bool,
    /// The definitions of all operators that formulas may call, by their numbers in the model.
    pub targets: OnceLock<Vec<Option<Target>>>,
}

impl Spec {
    /// The definition of an operator that a formula calls.
    ///
    /// # Errors
    /// If the program does not have it.
    pub fn target(&self, id: OpId) -> Result<Target> {
        let found = self.targets.get().and_then(|targets| targets.get(id.0).copied().flatten());
        found.ok_or_else(|| {
            Error::not_found("an operator that a formula calls is not in this program")
                .with_help("the spec was checked against another version of the stock library")
        })
    }
}

/// A loaded operator.
pub struct Operator {
    /// The spec that declares it.
    pub spec: &'static Spec,
    /// Its position there.
    pub index: usize,
    /// Its custom kernels, by the rows that they serve.
    pub kernels: Vec<(Backend, &'static SpecKernel)>,
    /// Its definition.
    pub definition: OnceLock<&'static OpDef>,
}

impl Operator {
    /// The operator behind a definition.
    ///
    /// # Errors
    /// If it was not loaded.
    #[inline]
    pub fn of(definition: &OpDef) -> Result<&'static Operator> {
        let custom: Option<&dyn Any> = definition.custom.map(|custom| custom as &dyn Any);
        custom
            .and_then(|custom| custom.downcast_ref::<Held>())
            .map(|held| held.0)
            .ok_or_else(|| Error::not_found(format!("`{}` was not loaded from a spec", definition.name)))
    }

    /// Its entry.
    pub fn op(&self) -> &Op {
        &self.spec.ops[self.index]
    }

    /// Its definition.
    ///
    /// # Errors
    /// If it is not complete yet.
    pub fn definition(&self) -> Result<&'static OpDef> {
        self.definition.get().copied().ok_or_else(|| Error::not_found("the operator is being loaded"))
    }

    /// The shapes and dtypes of a call's results.
    ///
    /// # Errors
    /// If the arguments do not fit.
    pub fn infer(&self, args: &[Arg<'_>]) -> Result<Inferred> {
        match &self.op().infer {
            Some(rules) => infer::infer(self, rules, args),
            None => Err(Error::not_implemented("it has no rules of inference")),
        }
    }

    /// The results that are present, a bit each.
    ///
    /// # Errors
    /// Errors of the conditions.
    pub fn present(&self, args: &[Arg<'_>]) -> Result<u64> {
        infer::present(self.spec, self.op(), args)
    }

    /// The results of its composition.
    ///
    /// # Errors
    /// If the arguments do not fit, and errors of the operators that it calls.
    pub fn compose(&self, args: &[Arg<'_>]) -> Result<Outputs> {
        let op = self.op();
        let Some(body) = &op.body.composite else {
            return Err(Error::not_implemented("it has no composition"));
        };
        let _level = if op.body.recursive { Some(checked::level()?) } else { None };
        let names = Arguments(args);
        let mut on = Evaluation::new(self.spec, &names);
        infer::check(self.definition()?, op, &mut on, args)?;
        let value = on.value(body)?;
        match (op.outputs.as_slice(), value) {
            ([only], Item::One(Value::Tensors(list))) if only.ty.kind == Kind::Tensors => {
                Ok(Outputs::from_vec(list))
            }
            ([_], value) => Ok(std::iter::once(present_or_empty(value)?).collect()),
            (_, Item::Several(items)) => items.into_iter().map(present_or_empty).collect(),
            (_, other) => Err(defect("several results", &other)),
        }
    }
}

fn present_or_empty(item: Item) -> Result<Tensor> {
    or_empty(item.optional_tensor()?)
}

/// An operator, as its definition holds it.
pub struct Held(pub &'static Operator);

impl CustomOp for Held {
    fn infer(&self, _op: &OpDef, args: &[Arg<'_>]) -> Result<Inferred> {
        self.0.infer(args)
    }

    fn infer_open(&self, op: &OpDef, _args: &[Arg<'_>], _sizes: Vec<Dims>) -> Result<Vec<(Dims, DType)>> {
        Err(Error::not_implemented(format!("`{}` has no rules for sizes that are not known", op.name)))
    }
}
