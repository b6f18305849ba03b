//! Declaring an operator while the program runs, and calling it.
//!
//! In: a kernel's file and function, and its signature. Out: an [`Operator`], which goes through
//! the same dispatcher as all others. Mistakes are found when it is declared, as far as they can be without
//! compiling; `build` compiles and loads at once.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opsmith_core::{Backend, DType};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::attributes::{AttrType, AttrValue};
use super::device::Place;
use super::gradient::{Bprop, BpropContext};
use super::infer::{InferCall, OutputDTypes, OutputShapes};
use super::kernel::{Kernel, Options, State};
use super::operator::Operator;
use super::registry::{self, Active};
use super::signature::{Attribute, Combination, Input, InputKind, Signature, check_signature, is_name};

/// Makes a gradient once the signature is known.
type MakeBprop = dyn FnOnce(&Signature) -> Result<Bprop>;

/// A declaration that is being written.
///
/// ```no_run
/// use opsmith_aot::Declaration;
/// use opsmith_runtime::{DType, Tensor};
///
/// # fn main() -> opsmith_runtime::Result<()> {
/// let add = Declaration::new("custom_add", "kernels/add.cc:CustomAdd")
///     .input("x")
///     .input("y")
///     .output("sum")
///     .dtypes([DType::F32, DType::F32, DType::F32])
///     .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
///     .declare()?;
/// let x = Tensor::of(&[1.0f32, 2.0]);
/// println!("{}", add.call(&[&x, &x])?);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is declared before `declare`"]
pub struct Declaration {
    name: String,
    kernel: String,
    doc: String,
    inputs: Vec<Input>,
    outputs: Vec<String>,
    /// Whether inputs and outputs without a declaration are those that calls and inference have.
    any_tensors: bool,
    dynamic_output: bool,
    attributes: Vec<Attribute>,
    combinations: Vec<Combination>,
    targets: Vec<Backend>,
    shapes: OutputShapes,
    dtypes: OutputDTypes,
    bprop: Option<Box<MakeBprop>>,
    flags: Vec<String>,
    check: Option<bool>,
    sandbox: Option<bool>,
    timeout: Option<Duration>,
    reload: Option<bool>,
    listed: bool,
}

impl Declaration {
    /// An operator of that name, computed by a function in a file: `kernels/add.cc:CustomAdd`. A file that
    /// ends in `.cc`, `.cpp`, `.cxx` or `.cu` is compiled when it is first needed; any other is taken for
    /// a library.
    pub fn new(name: impl Into<String>, kernel: impl Into<String>) -> Declaration {
        Declaration {
            name: name.into(),
            kernel: kernel.into(),
            doc: String::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            any_tensors: false,
            dynamic_output: false,
            attributes: Vec::new(),
            combinations: Vec::new(),
            targets: Vec::new(),
            shapes: OutputShapes::Library,
            dtypes: OutputDTypes::Library,
            bprop: None,
            flags: Vec::new(),
            check: None,
            sandbox: None,
            timeout: None,
            reload: None,
            listed: true,
        }
    }

    /// The meaning of the operator, for documents.
    pub fn doc(mut self, doc: impl Into<String>) -> Self {
        self.doc = doc.into();
        self
    }

    /// An input that must be given.
    pub fn input(self, name: impl Into<String>) -> Self {
        self.input_of_kind(name, InputKind::Required)
    }

    /// An input that may be absent; kernels see the dtype `none` then.
    pub fn optional_input(self, name: impl Into<String>) -> Self {
        self.input_of_kind(name, InputKind::Optional)
    }

    /// A list of tensors of any length; kernels see one after the other. There can be one.
    pub fn dynamic_input(self, name: impl Into<String>) -> Self {
        self.input_of_kind(name, InputKind::Dynamic)
    }

    pub(super) fn input_of_kind(mut self, name: impl Into<String>, kind: InputKind) -> Self {
        self.inputs.push(Input { name: name.into(), kind });
        self
    }

    /// Lets the operator take a list of tensors where no input is named, and give as many as inference says where no
    /// output is: records may have attributes only.
    pub(super) fn any_tensors(mut self) -> Self {
        self.any_tensors = true;
        self
    }

    /// Names the inputs and outputs that [`Declaration::any_tensors`] leaves open.
    fn fill_in(mut self) -> Self {
        if self.any_tensors && self.inputs.is_empty() {
            let mut name = "inputs".to_owned();
            while self.attributes.iter().any(|attribute| attribute.name == name) {
                name.push('_');
            }
            self = self.dynamic_input(name);
        }
        if self.any_tensors && self.outputs.is_empty() {
            let count = match (&self.shapes, &self.dtypes) {
                (OutputShapes::Constant(shapes), _) => shapes.len(),
                (_, OutputDTypes::Constant(dtypes)) => dtypes.len(),
                _ => 1,
            };
            self.outputs = match count {
                1 => vec!["output".to_owned()],
                _ => (0..count).map(|number| format!("output{number}")).collect(),
            };
        }
        self
    }

    /// An output.
    pub fn output(mut self, name: impl Into<String>) -> Self {
        self.outputs.push(name.into());
        self
    }

    /// The only output, a list of tensors whose length inference says.
    pub fn dynamic_output(mut self, name: impl Into<String>) -> Self {
        self.outputs.push(name.into());
        self.dynamic_output = true;
        self
    }

    /// An attribute that always has this value.
    pub fn attribute(self, name: impl Into<String>, value: impl Into<AttrValue>) -> Self {
        let value = value.into();
        self.any_attribute(Attribute { name: name.into(), ty: value.ty(), value: Some(value), default: None })
    }

    /// An attribute that calls give, and its value if they do not.
    pub fn attribute_with_default(self, name: impl Into<String>, default: impl Into<AttrValue>) -> Self {
        let default = default.into();
        self.any_attribute(Attribute {
            name: name.into(),
            ty: default.ty(),
            value: None,
            default: Some(default),
        })
    }

    /// An attribute that every call gives.
    pub fn attribute_at_call(self, name: impl Into<String>, ty: AttrType) -> Self {
        self.any_attribute(Attribute { name: name.into(), ty, value: None, default: None })
    }

    pub(super) fn any_attribute(mut self, attribute: Attribute) -> Self {
        self.attributes.push(attribute);
        self
    }

    /// A combination of dtypes that the kernel takes and gives: of each input, then of each output.
    /// Without any, it takes all.
    pub fn dtypes(self, row: impl IntoIterator<Item = DType>) -> Self {
        self.combination(row.into_iter().map(Some).collect())
    }

    pub(super) fn combination(mut self, row: Combination) -> Self {
        self.combinations.push(row);
        self
    }

    /// The backend that the kernel runs on. Without this it is CUDA for a source in `.cu`, and the CPU for
    /// every other file. A kernel for CUDA is called with tensors of the host, as all others: its operands
    /// are copied to the device, its outputs back, and the call waits for them.
    pub fn target(mut self, backend: Backend) -> Self {
        self.targets.push(backend);
        self
    }

    /// The shape of the one output. Without this, `FInferShape` of the library says it.
    pub fn output_shape(self, shape: impl Into<Vec<i64>>) -> Self {
        self.output_shapes([shape.into()])
    }

    /// The shapes of all outputs.
    pub fn output_shapes(mut self, shapes: impl Into<Vec<Vec<i64>>>) -> Self {
        self.shapes = OutputShapes::Constant(shapes.into());
        self
    }

    /// A function that computes the shapes of all outputs.
    pub fn output_shape_fn(
        mut self,
        function: impl Fn(&InferCall<'_>) -> Result<Vec<Vec<i64>>> + Send + Sync + 'static,
    ) -> Self {
        self.shapes = OutputShapes::Computed(Arc::new(function));
        self
    }

    /// The dtype of the one output. Without this, the combination of dtypes says it, or `FInferType` of
    /// the library.
    pub fn output_dtype(self, dtype: DType) -> Self {
        self.output_dtypes([dtype])
    }

    /// The dtypes of all outputs.
    pub fn output_dtypes(mut self, dtypes: impl Into<Vec<DType>>) -> Self {
        self.dtypes = OutputDTypes::Constant(dtypes.into());
        self
    }

    /// A function that computes the dtypes of all outputs.
    pub fn output_dtype_fn(
        mut self,
        function: impl Fn(&InferCall<'_>) -> Result<Vec<DType>> + Send + Sync + 'static,
    ) -> Self {
        self.dtypes = OutputDTypes::Computed(Arc::new(function));
        self
    }

    /// A function that computes the gradient of each input, with operators of any kind: as a formula of
    /// `derivatives` in a spec, which the generator checks and compiles.
    pub fn bprop(
        mut self,
        function: impl Fn(&BpropContext) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Self {
        self.bprop = Some(Box::new(move |_| Ok(Bprop::Function(Arc::new(function)))));
        self
    }

    /// Another operator that computes the gradient of each input. It takes the inputs, the outputs or not,
    /// and the gradients of the outputs; attributes of the same names get the same values.
    pub fn bprop_operator(mut self, operator: &Operator) -> Self {
        let op = operator.op;
        self.bprop = Some(Box::new(move |signature| {
            let taken = op.schema.args.iter().filter(|arg| arg.ty.holds_tensors()).count();
            let (inputs, outputs) = (signature.inputs.len(), signature.outputs.len());
            let takes_outputs = taken == inputs + 2 * outputs;
            if !takes_outputs && taken != inputs + outputs || op.schema.returns.len() != inputs {
                return Err(Error::argument(format!(
                    "`{}` cannot be the gradient of `{}`: it takes {taken} tensors and gives {}",
                    op.name,
                    signature.name,
                    op.schema.returns.len()
                ))
                .with_help(format!(
                    "it must take {} (inputs, gradients of outputs) or {} (inputs, outputs, gradients of outputs), and give {inputs}",
                    inputs + outputs,
                    inputs + 2 * outputs
                )));
            }
            Ok(Bprop::Operator { op, takes_outputs })
        }));
        self
    }

    /// A flag for the compiler, after the default ones.
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Whether buffers are guarded, poisoned and compared in every call; `OPSMITH_CHECK` says it for all.
    pub fn check(mut self, on: bool) -> Self {
        self.check = Some(on);
        self
    }

    /// Whether the kernel runs in a process of its own; `OPSMITH_AOT_SANDBOX` says it for all.
    pub fn sandbox(mut self, on: bool) -> Self {
        self.sandbox = Some(on);
        self
    }

    /// How long the kernel may run in the sandbox; `OPSMITH_AOT_TIMEOUT` says it for all, in seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whether the kernel is built again when its files change; `OPSMITH_AOT_RELOAD` says it for all.
    pub fn reload(mut self, on: bool) -> Self {
        self.reload = Some(on);
        self
    }

    /// Keeps the operator from being found by name, so that there can be several of that name.
    pub fn unlisted(mut self) -> Self {
        self.listed = false;
        self
    }

    /// Lets the operator be found by name, as it is unless it comes from a record.
    pub fn listed(mut self) -> Self {
        self.listed = true;
        self
    }

    /// Declares the operator. Its code is compiled and loaded when it is first called.
    ///
    /// # Errors
    /// If the declaration contradicts itself, or the name is taken.
    pub fn declare(self) -> Result<Operator> {
        let name = self.name.clone();
        self.fill_in().declare_checked().map_err(|error| error.in_op(name, Vec::new()))
    }

    /// [`Declaration::declare`], and compiles and loads at once.
    ///
    /// # Errors
    /// As that, and whatever the compiler or the loader say.
    pub fn build(self) -> Result<Operator> {
        let operator = self.declare()?;
        operator.load().inspect_err(|_| registry::unload(operator.op))?;
        Ok(operator)
    }

    fn declare_checked(self) -> Result<Operator> {
        let (file, function) = self.kernel.rsplit_once(':').unwrap_or((&self.kernel, ""));
        if file.is_empty() || !is_name(function) {
            return Err(Error::argument(format!("`{}` does not name a kernel", self.kernel))
                .with_help("write FILE:FUNCTION, as in kernels/add.cc:CustomAdd"));
        }
        let (source, function) = (PathBuf::from(file), function.to_owned());
        let place = Place::of(&source, &self.targets)?;
        let environment = Options::from_environment()?;
        let options = Options {
            flags: self.flags,
            check: self.check.unwrap_or(environment.check),
            sandbox: self.sandbox.unwrap_or(environment.sandbox),
            timeout: self.timeout.unwrap_or(environment.timeout),
            reload: self.reload.unwrap_or(environment.reload),
        };
        let signature = Signature {
            name: self.name,
            inputs: self.inputs,
            outputs: self.outputs,
            dynamic_output: self.dynamic_output,
            attributes: self.attributes,
            combinations: self.combinations,
        };
        check_signature(&signature)?;
        let bprop = self.bprop.map(|bprop| bprop(&signature)).transpose()?;
        let (shapes, dtypes, state) = (self.shapes, self.dtypes, Mutex::new(State::default()));
        let kernel = Kernel { signature, source, function, place, options, shapes, dtypes, state };
        let op = registry::declare(Active { kernel, bprop }, &self.doc, self.listed)?;
        Ok(Operator { op })
    }
}
