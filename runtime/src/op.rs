//! The definition of an operator, as static data written by the generator.

mod call;
mod custom;
mod flops;
mod signature;
mod table;
mod view;

use opsmith_core::{Backend, DType};
pub use opsmith_core::{Combination, ElementType};
use smallvec::SmallVec;

use crate::arg::{Arg, Value, describe_operands};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::facts::{Facts, NumberUse};
pub use crate::grad::{Forward, GradDef, GradientFormula, Gradients, Tangents, backends, bits};
use crate::infer::context::InferFunction;
use crate::infer::expr::Rules;
use crate::layout::Dims;
use crate::library::{Form, Library};
use crate::sample::{Sample, Tolerance};
use crate::tensor::Tensor;

pub(crate) use call::make_valid;
pub use call::{Kernel, KernelCall, KernelFn};
pub use custom::CustomOp;
pub(crate) use custom::{UNKNOWN_DIM, UNKNOWN_RANK};
pub use flops::{Flops, FlopsFn, absent_result};
pub use table::{KernelOrigin, KernelTable, Kernels, same_kernel};
pub use view::ViewFn;

pub use signature::{ArgDef, ArgKind, ArgType, DefaultValue, ItemKind, ReturnDef, Schema};

/// The definition of one operator: all data that the dispatcher needs.
pub struct OpDef {
    /// Full name with overload, e.g. `add.Tensor`.
    pub name: &'static str,
    /// The signature.
    pub schema: Schema,
    /// Documentation from the spec.
    pub doc: &'static str,
    /// Source location of the declaration, e.g. `ops.yaml:12`.
    pub location: &'static str,
    /// The forms that exist besides the functional one.
    pub forms: Forms,
    /// Shape and dtype of each output, and the dtype that selects the kernel. Views and
    /// compositions have none.
    pub infer: Option<InferFn>,
    /// The same rules as data, with the conditions on arguments, for symbolic sizes.
    pub rules: Option<&'static Rules<'static>>,
    /// The hand-written function that `infer` calls, which also accepts symbolic sizes.
    pub infer_function: Option<InferFunction>,
    /// The implementation of an operator declared at run time; includes its inference.
    pub custom: Option<&'static dyn CustomOp>,
    /// The result of inference for operands of one shape and dtype.
    pub uniform: UniformCall,
    /// The element type that a kernel receives for each argument.
    pub element_types: &'static [ElementType],
    /// Arguments that kernels require in row-major order, a bit each.
    pub contiguous: u64,
    /// Number arguments that take part in arithmetic on elements, with their use.
    pub numbers: &'static [(u8, NumberUse)],
    /// Kernels by backend and dtype.
    pub kernels: Kernels,
    /// Arithmetic operations of a kernel.
    pub flops: Flops,
    /// The layouts of a view operator's outputs.
    pub view: Option<ViewFn>,
    /// The operator as a composition of others, used where no kernel exists.
    pub composite: Option<CompositeFn>,
    /// The result of an operator that returns no tensors.
    pub host: Option<HostFn>,
    /// The derivative; `None` if the operator has none, or that of its composition is used.
    pub grad: Option<&'static GradDef>,
    /// The allowed combinations of dtypes of arguments and results; empty if inference alone decides.
    pub combinations: &'static [Combination],
    /// The results that are present, a bit each; `None` if all always are. Absent ones are empty tensors internally.
    pub present: Option<PresentFn>,
    /// Number of trailing results that only gradient formulas receive.
    pub hidden: usize,
    /// The arguments that the in-place form writes, each with its result; empty if it writes the only result into the
    /// first argument.
    pub inplace_pairs: &'static [(u8, u8)],
    /// Argument values for tests and documents.
    pub samples: &'static [Sample],
    /// Tolerances of tests, and checks that they skip.
    pub tolerances: &'static [Tolerance],
    /// Facts about it, apart from its computation.
    pub facts: Facts,
    /// The library the operator belongs to.
    pub library: &'static Library,
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl OpDef {
    /// A definition with other gradient rules and everything else unchanged. It is leaked: definitions are static, and
    /// an owned one could be given the inference of another operator.
    pub fn with_grad(&self, grad: &'static GradDef) -> &'static OpDef {
        let OpDef { name, schema, doc, location, forms, infer, rules, infer_function, custom, .. } = *self;
        let OpDef { uniform, element_types, contiguous, numbers, view, composite, host, .. } = *self;
        let OpDef {
            combinations,
            present,
            hidden,
            inplace_pairs,
            samples,
            tolerances,
            facts,
            library,
            flops,
            ..
        } = *self;
        let (kernels, grad) = (self.kernels.again(), Some(grad));
        Box::leak(Box::new(OpDef {
            name,
            schema,
            doc,
            location,
            forms,
            infer,
            rules,
            infer_function,
            custom,
            uniform,
            element_types,
            contiguous,
            numbers,
            kernels,
            flops,
            view,
            composite,
            host,
            grad,
            combinations,
            present,
            hidden,
            inplace_pairs,
            samples,
            tolerances,
            facts,
            library,
        }))
    }

    /// An operator with a signature only, as text and as data, and the line of its entry.
    pub const fn declared(
        text: &'static str,
        args: &'static [ArgDef],
        returns: &'static [ReturnDef],
        location: &'static str,
        library: &'static Library,
    ) -> OpDef {
        let mut length = 0;
        while length < text.len() && text.as_bytes()[length] != b'(' {
            length += 1;
        }
        let (name, _) = text.split_at(length);
        OpDef::new(name, Schema { text, args, returns }, location, library)
    }

    /// An operator with a name and a signature only.
    pub const fn new(
        name: &'static str,
        schema: Schema,
        location: &'static str,
        library: &'static Library,
    ) -> OpDef {
        OpDef {
            name,
            schema,
            doc: "",
            location,
            forms: Forms::NONE,
            infer: None,
            rules: None,
            infer_function: None,
            custom: None,
            uniform: UniformCall::No,
            element_types: &[],
            contiguous: 0,
            numbers: &[],
            kernels: Kernels::NONE,
            flops: Flops::Unknown,
            view: None,
            composite: None,
            host: None,
            grad: None,
            combinations: &[],
            present: None,
            hidden: 0,
            inplace_pairs: &[],
            samples: &[],
            tolerances: &[],
            facts: Facts::NONE,
            library,
        }
    }
}

/// The forms of an operator besides the functional one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forms {
    /// Full name of the in-place form, e.g. `add_.Tensor`.
    pub inplace: Option<&'static str>,
    /// Full name of the form that writes into given tensors, e.g. `add.out`.
    pub out: Option<&'static str>,
    /// Whether the outputs may share memory with an input element by element (kernels that read each element before
    /// they write it).
    pub elementwise: bool,
    /// Whether kernels change the only result, which starts as a copy of the first argument, and do not take that. The
    /// in-place form gives them the argument's own memory.
    pub updates: bool,
}

impl Forms {
    /// The functional form alone.
    pub const NONE: Forms = Forms { inplace: None, out: None, elementwise: false, updates: false };
}

/// Shape, dtype and device of one output, before it exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutSpec {
    /// Sizes.
    pub sizes: Dims,
    /// Element type.
    pub dtype: DType,
}

/// The result of inference where every tensor operand has one shape, dtype and device, and no number has a higher
/// category: the output has that shape, and a dtype determined by theirs. The dispatcher then skips inference, which is
/// the common case of pointwise operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UniformCall {
    /// Not determined: inference runs.
    No,
    /// The operands' dtype.
    Same,
    /// The operands' dtype if it is floating point or complex; otherwise inference runs.
    SameIfInexact,
    /// A fixed dtype; the operands' dtype selects the kernel.
    Fixed(DType),
}

/// The result of inference for a call.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// One entry an output.
    pub outs: SmallVec<[OutSpec; 1]>,
    /// The dtype that selects the kernel.
    pub compute: DType,
    /// The device of the outputs and the kernel.
    pub device: Device,
}

/// Checks the length of a list of result tensors.
///
/// # Errors
/// If the number is negative, or so large that the tensor handles alone would exhaust memory.
pub fn check_list_length(length: i64) -> Result<()> {
    const MOST: i64 = 1 << 20;
    if !(0..=MOST).contains(&length) {
        return Err(Error::value(format!("the result would be a list of {length} tensors"))
            .with_help(format!("lists have 0 to {MOST} tensors")));
    }
    Ok(())
}

impl Inferred {
    /// The outputs of a call, from sizes and dtype of each.
    #[inline]
    pub fn new<const N: usize>(outs: [(Dims, DType); N], compute: DType, device: Device) -> Inferred {
        let mut specs = SmallVec::new();
        for (sizes, dtype) in outs {
            specs.push(OutSpec { sizes, dtype });
        }
        Inferred { outs: specs, compute, device }
    }

    /// The same on the device of a call's tensors, which is found before the outputs are.
    ///
    /// # Errors
    /// If tensors are on several devices, and whatever the rules report.
    #[inline]
    pub fn of<const N: usize>(
        args: &[Arg<'_>],
        compute: DType,
        outs: impl FnOnce() -> Result<[(Dims, DType); N]>,
    ) -> Result<Inferred> {
        let device = crate::infer::device_of(args)?;
        Ok(Inferred::new(outs()?, compute, device))
    }

    /// The outputs of a call that returns a list, from its length and the sizes and dtype at each position.
    ///
    /// # Errors
    /// If the length is negative or too large, and errors of the rule.
    pub fn list(
        length: i64,
        each: impl Fn(i64) -> Result<(Dims, DType)>,
        compute: DType,
        device: Device,
    ) -> Result<Inferred> {
        check_list_length(length)?;
        let outs = (0..length)
            .map(|position| each(position).map(|(sizes, dtype)| OutSpec { sizes, dtype }))
            .collect::<Result<_>>()?;
        Ok(Inferred { outs, compute, device })
    }
}

/// Computes which results of a call are present, a bit each.
pub type PresentFn = fn(&[Arg<'_>]) -> Result<u64>;
/// Infers a call's outputs.
pub type InferFn = fn(&[Arg<'_>]) -> Result<Inferred>;
/// The tensors a call returns.
pub type Outputs = SmallVec<[Tensor; 1]>;
/// Runs an operator as a composition of others.
pub type CompositeFn = fn(&[Arg<'_>]) -> Result<Outputs>;
/// Runs an operator that returns no tensors.
pub type HostFn = fn(&[Arg<'_>]) -> Result<Vec<Value>>;
impl OpDef {
    /// The position of an argument, by its name or an alias.
    pub fn argument(&self, name: &str) -> Option<usize> {
        let args = self.schema.args;
        let position = args.iter().position(|arg| arg.name == name);
        position.or_else(|| args.iter().position(|arg| arg.aliases.contains(&name)))
    }

    /// The name of a form; the operator's name if the form has none.
    #[inline]
    pub(crate) fn form_name(&'static self, form: Form) -> &'static &'static str {
        let name = match form {
            Form::Functional => None,
            Form::Inplace => self.forms.inplace.as_ref(),
            Form::Out => self.forms.out.as_ref(),
        };
        name.unwrap_or(&self.name)
    }

    /// Infers a call's outputs; `None` for views and compositions, which have no inference rule.
    #[inline]
    pub(crate) fn inferred(&self, args: &[Arg<'_>]) -> Option<Result<Inferred>> {
        match (self.infer, self.custom_inference()) {
            (Some(infer), _) => Some(infer(args)),
            (None, Some(custom)) => Some(custom.infer(self, args)),
            (None, None) => None,
        }
    }

    /// The declaration at run time, if inference is its own: neither rules nor a composition give the results.
    #[inline]
    pub(crate) fn custom_inference(&self) -> Option<&'static dyn CustomOp> {
        self.custom.filter(|_| self.infer.is_none() && self.composite.is_none())
    }

    /// The error of a call with the called name and the operands added, unless it names a call already.
    #[cold]
    pub(crate) fn error_of_call(&'static self, error: Error, name: &'static str, args: &[Arg<'_>]) -> Error {
        if error.op().is_some() {
            return error;
        }
        let names = self.schema.args.iter().map(|arg| arg.name);
        error.in_op(name, describe_operands(names.zip(args.iter().copied())))
    }

    /// Whether there is a kernel, so that the operator's composition is not needed.
    pub(crate) fn has_kernel(&self, backend: Backend, compute: DType) -> bool {
        self.kernels.get(backend, compute).is_some()
    }

    /// The results of a call that are present, a bit each.
    ///
    /// # Errors
    /// Errors of the condition.
    pub fn present_results(&self, args: &[Arg<'_>]) -> Result<u64> {
        self.present.map_or(Ok(u64::MAX), |present| present(args))
    }

    /// Whether an output of the given dtype can have a gradient.
    #[inline]
    pub(crate) fn is_differentiable(&self, output: usize, dtype: DType) -> bool {
        dtype.is_differentiable()
            && self.grad.is_some_and(|grad| grad.differentiable_outputs & (1 << self.result_of(output)) != 0)
    }

    /// Whether formulas that read an output cannot be differentiated with respect to it: it may change with the inputs
    /// and has no gradient.
    #[inline]
    pub(crate) fn is_unfollowed(&self, output: usize, dtype: DType) -> bool {
        let followed = |grad: &GradDef| grad.differentiable_outputs | grad.constant_outputs;
        dtype.is_differentiable()
            && self.grad.is_some_and(|grad| followed(grad) & (1 << self.result_of(output)) == 0)
    }

    /// Whether formulas read an output as a constant.
    #[inline]
    pub(crate) fn is_constant(&self, output: usize) -> bool {
        self.grad.is_some_and(|grad| grad.constant_outputs & (1 << self.result_of(output)) != 0)
    }

    /// The error of a derivative that would need the gradient of an output without one.
    #[cold]
    pub(crate) fn unfollowed(&self, output: usize) -> Error {
        let result = match self.schema.returns.get(self.result_of(output)).and_then(|result| result.name) {
            Some(name) => format!("result `{name}`"),
            None => format!("result {output}"),
        };
        Error::autograd(format!(
            "the derivative of `{}` cannot be differentiated: it reads {result}, which is declared to have no gradient",
            self.name
        ))
        .with_help("give that result a gradient in the spec, or compute it from the arguments in the formula")
    }

    /// The declared result of an output; all tensors of a list belong to one.
    #[inline]
    pub(crate) fn result_of(&self, output: usize) -> usize {
        output.min(self.schema.returns.len().saturating_sub(1))
    }

    /// The kernel for a backend and dtype, or an error that lists the existing ones.
    #[inline]
    pub(crate) fn kernel(&self, backend: Backend, dtype: DType) -> Result<Kernel> {
        self.kernels.get(backend, dtype).ok_or_else(|| self.missing_kernel(backend, dtype))
    }

    #[cold]
    fn missing_kernel(&self, backend: Backend, dtype: DType) -> Error {
        let list = |backend: Backend| {
            let names: Vec<_> = self.kernels.dtypes(backend).iter().map(DType::name).collect();
            (!names.is_empty()).then(|| format!("{}: {}", backend.key(), names.join(", ")))
        };
        let known: Vec<_> = Backend::ALL.into_iter().filter_map(list).collect();
        let help = match (dtype.is_stored(), known.is_empty()) {
            (true, _) => {
                format!("{dtype} only stores: convert it first, as with `to({})`", dtype.to_computing())
            }
            (_, true) => "no kernel is registered for it".to_owned(),
            _ => format!("there are kernels for {}", known.join("; ")),
        };
        Error::not_implemented(format!("there is no {} kernel for {dtype}", backend.key())).with_help(help)
    }
}
