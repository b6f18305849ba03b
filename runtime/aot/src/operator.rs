//! Operators that were declared at run time, as their callers hold them.
//!
//! In: tensors and attributes. Out: the kernel's results, through the same dispatcher as all others;
//! or shapes and dtypes alone. Must not know how kernels are built and run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opsmith_core::DType;
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::call;
use opsmith_runtime::layout::Dims;
use opsmith_runtime::op::{OpDef, Outputs};
use opsmith_runtime::tensor::Tensor;

use super::attributes::AttrValue;
use super::elf::LibraryFacts;
use super::file::KernelFile;
use super::inspect::Inspection;
use super::instance::{Shape, Slot};
use super::registry::{self, Active, Declared};

/// An operator that was declared at run time. The handle can be copied; the operator stays until it is
/// unloaded.
#[derive(Clone, Copy)]
pub struct Operator {
    pub(super) op: &'static OpDef,
}

impl Operator {
    /// Its definition, as the dispatcher knows it.
    pub fn definition(self) -> &'static OpDef {
        self.op
    }

    /// Calls an operator with one output; attributes have their defaults.
    ///
    /// # Errors
    /// If the arguments do not fit, or the kernel cannot be built, loaded or run, or fails.
    #[inline]
    pub fn call(self, inputs: &[&Tensor]) -> Result<Tensor> {
        self.single(self.call_with(inputs, &[])?)
    }

    /// Calls an operator with several outputs; attributes have their defaults.
    ///
    /// # Errors
    /// As [`Operator::call`].
    pub fn call_several(self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        Ok(self.call_with(inputs, &[])?.into_vec())
    }

    /// Calls an operator with attributes by name.
    ///
    /// # Errors
    /// As [`Operator::call`].
    pub fn call_with(self, inputs: &[&Tensor], attributes: &[(&str, AttrValue)]) -> Result<Outputs> {
        let defs = self.op.schema.args;
        let plain = attributes.is_empty() && defs.len() == inputs.len();
        if plain && defs.iter().all(|def| def.ty.is_tensor()) {
            let args: smallvec::SmallVec<[Arg<'_>; 8]> =
                inputs.iter().map(|input| Arg::Tensor(input)).collect();
            return call::invoke(self.op, &args);
        }
        self.call_bound(inputs, attributes)
    }

    /// The same, where something has to be filled in.
    fn call_bound(self, inputs: &[&Tensor], attributes: &[(&str, AttrValue)]) -> Result<Outputs> {
        let mut args: Vec<Value> = Vec::new();
        let defs = self.op.schema.args;
        let lists = defs.iter().any(|def| def.ty.kind == opsmith_runtime::op::ArgKind::Tensors);
        let declared = defs.iter().filter(|def| def.ty.holds_tensors()).count();
        let mut rest = inputs.iter();
        for def in &defs[..declared] {
            if def.ty.is_tensor() {
                args.extend(rest.next().map(|input| Value::Tensor((*input).clone())));
                continue;
            }
            // The values that are left when all others have theirs.
            let length = (inputs.len() + 1).saturating_sub(declared);
            args.push(Value::Tensors(rest.by_ref().take(length).map(|input| (*input).clone()).collect()));
        }
        if rest.next().is_some() && !lists {
            return Err(Error::argument(format!("{} inputs given, {declared} taken", inputs.len()))
                .with_help(format!("the signature is {}", self.op.schema.text))
                .in_op(self.op.name, Vec::new()));
        }
        let named: Vec<(&str, Value)> =
            attributes.iter().map(|(name, value)| (*name, value.to_value())).collect();
        let results = opsmith_runtime::boxed::call_definition(self.op, &args, &named)?;
        let mut outs = Outputs::new();
        for result in results {
            match result {
                Value::Tensors(tensors) => outs.extend(tensors),
                result => outs.push(result.into_tensor()?),
            }
        }
        Ok(outs)
    }

    /// Calls with arguments in the order of the signature.
    ///
    /// # Errors
    /// As [`Operator::call`]; the arguments must have the types of the signature.
    pub fn invoke(self, args: &[Arg<'_>]) -> Result<Outputs> {
        let defs = self.op.schema.args;
        if args.len() != defs.len() || args.iter().zip(defs).any(|(arg, def)| !arg.has_type(def.ty)) {
            let given: Vec<&str> = args.iter().map(|arg| arg.kind()).collect();
            return Err(Error::argument(format!("({}) does not fit the signature", given.join(", ")))
                .with_help(format!("the signature is {}", self.op.schema.text))
                .in_op(self.op.name, Vec::new()));
        }
        call::invoke(self.op, args)
    }

    /// Compiles the source if it has to be, and loads the library, so that the first call need not.
    ///
    /// # Errors
    /// Whatever the compiler or the loader say.
    pub fn load(self) -> Result<()> {
        let active = self.active()?;
        let result = if active.kernel.options.sandbox {
            active.kernel.object(&mut active.kernel.state()).map(|_| ())
        } else {
            active.kernel.library(&mut active.kernel.state()).map(|_| ())
        };
        result.map_err(|error| error.in_op(self.op.name, Vec::new()))
    }

    /// The shared object that is loaded, or would be; a source is compiled for it.
    ///
    /// # Errors
    /// Whatever the compiler says.
    pub fn library(self) -> Result<PathBuf> {
        let active = self.active()?;
        active
            .kernel
            .object(&mut active.kernel.state())
            .map(|file| file.path().to_owned())
            .map_err(|error| error.in_op(self.op.name, Vec::new()))
    }

    /// The content of its library; a source is compiled for it.
    ///
    /// # Errors
    /// If there is none, or it is none for this processor.
    pub fn inspect(self) -> Result<Inspection> {
        super::inspect::look(&KernelFile::open(&self.library()?)?)
    }

    /// Whether its library infers dtypes of outputs (`FInferType`); a source is compiled for it. The library is
    /// read for that, not loaded.
    ///
    /// # Errors
    /// If there is none, or it is none for this processor.
    pub fn infers_dtypes(self) -> Result<bool> {
        let function = format!("{}InferType", self.active()?.kernel.function);
        let facts = KernelFile::open(&self.library()?).and_then(|file| LibraryFacts::read(&file));
        facts.map(|facts| facts.has(&function)).map_err(|error| error.in_op(self.op.name, Vec::new()))
    }

    /// How long the compiler ran for this operator; `None` if its library was in the cache, or given.
    ///
    /// # Errors
    /// If the operator was unloaded.
    pub fn compile_time(self) -> Result<Option<Duration>> {
        Ok(self.active()?.kernel.state().compiled)
    }

    /// Shape and dtype of each output, from those of the inputs; nothing runs. A size may be −1 for one
    /// that is not known, and a shape `[-2]` for one whose number of dimensions is not.
    ///
    /// # Errors
    /// If inference fails.
    pub fn infer(
        self,
        inputs: &[(&[i64], DType)],
        attributes: &[(&str, AttrValue)],
    ) -> Result<Vec<(Vec<i64>, DType)>> {
        let infer = || {
            let active = self.active()?;
            let slot = |(sizes, dtype): &(&[i64], DType)| Slot {
                dtype: Some(*dtype),
                sizes: Dims::from_slice(sizes),
            };
            let mut slots: Vec<Slot> = inputs.iter().map(slot).collect();
            active.kernel.choose(&mut slots)?;
            let mut at_call = Vec::new();
            for attribute in
                active.kernel.signature.attributes.iter().filter(|attribute| attribute.value.is_none())
            {
                let given = attributes
                    .iter()
                    .find(|(name, _)| *name == attribute.name)
                    .map(|(_, value)| value.clone());
                at_call.push(given.or(attribute.default.clone()));
            }
            let shape = Shape { inputs: slots.len(), slots, at_call };
            let outs = active.kernel.infer_slots(&shape)?;
            Ok(outs
                .into_iter()
                .map(|slot| (slot.sizes.into_vec(), slot.dtype.unwrap_or(DType::F32)))
                .collect())
        };
        infer().map_err(|error: Error| error.in_op(self.op.name, Vec::new()))
    }

    /// Takes the operator away: calls that run finish, the kernel's data is destroyed, the library closed.
    /// Calling it afterwards is an error.
    pub fn unload(self) {
        registry::unload(self.op);
    }

    fn active(self) -> Result<Arc<Active>> {
        let declared = Declared::of(self.op)
            .ok_or_else(|| Error::not_found("the operator was not declared at run time"))?;
        declared.active().map_err(|error| error.in_op(self.op.name, Vec::new()))
    }

    #[inline]
    fn single(self, mut outs: Outputs) -> Result<Tensor> {
        if outs.len() != 1 {
            return Err(Error::argument(format!("the operator has {} outputs", outs.len()))
                .with_help("use `call_several`")
                .in_op(self.op.name, Vec::new()));
        }
        Ok(outs.swap_remove(0))
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{}>", self.op.schema.text)
    }
}
