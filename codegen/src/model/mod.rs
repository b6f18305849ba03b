//! The checked model, from which every emitter works.
//!
//! In: entries that `lower` has checked. Out: typed data. Nothing here is text that stands for a
//! choice, no emitter sees YAML, and nothing here names an operator.

mod body;
pub mod expr;
mod facts;
mod formula;
mod function;
mod gradients;
mod kept;
mod names;
mod roles;
mod samples;
mod supplied;
mod ty;

use opsmith_core::constraint::Constraint;
pub use opsmith_core::{Combination, ElementType as Element};
use std::collections::BTreeMap;

use opsmith_core::{DType, MemoryFormat};

use crate::diagnostics::Span;
use expr::{Expr, ExprKind, Variable};

pub use body::{Body, DEVICE_LOOPS, Kernel, KernelSource};
pub use facts::{Deprecated, Facts, Lines, NotationPart, NumberUse, ValueUse};
pub use formula::{
    FENCES, Formula, FormulaLine, FormulaNode, FormulaScripts, GRAMMAR_WORDS, RANGE_OPERATORS, RangeOperator,
    SIGNS, Sign, Strength, formula_words,
};
pub use function::{Function, FunctionReturn};
pub use gradients::{Backends, Derivative, Forward, ForwardFormula, GradientSource};
pub(crate) use kept::Kept;
pub use names::ForeignNames;
pub use roles::{Operation, Operator, Role};
pub use samples::{Fill, Sample, SampleTensor, SampleValue, Tolerance, ToleranceOf};
pub use supplied::{Note, Supplied, SuppliedKernel};
pub use ty::{ItemKind, Kind, Ty};

/// Everything one run of the generator knows.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The operators: first those of the parent libraries, then the spec's own.
    pub ops: Vec<Op>,
    /// The scalar functions of pointwise expressions.
    pub functions: Vec<Function>,
    /// Names that other libraries have for the operators.
    pub foreign_names: ForeignNames,
    /// The documentation of the Rust functions that the spec's own rules and views name, by path, as far as it was looked for and
    /// found.
    pub documented: BTreeMap<String, DocumentedFunction>,
    /// Rules of compositions that were put together.
    pub(crate) kept_rules: Kept<RuleKey, Option<Expr>>,
    /// The refused calls of operators in words, by the operator's number.
    pub(crate) kept_errors: Kept<usize, Vec<String>>,
    /// The rules of the shape and dtype of each result in words, by the operator's number.
    pub(crate) kept_results: Kept<usize, Vec<[String; 2]>>,
}

impl Model {
    /// The number of an operator, by which values of it are kept; `None` for one that is not of this model, such as a changed copy.
    pub(crate) fn number_of(&self, op: &Op) -> Option<usize> {
        let offset = std::ptr::from_ref(op).addr().checked_sub(self.ops.as_ptr().addr())?;
        let number = offset / size_of::<Op>();
        (number < self.ops.len()).then_some(number)
    }

    /// Forgets values that were computed before a change of the model.
    pub(crate) fn forget_kept(&mut self) {
        self.kept_rules = Kept::default();
        self.kept_errors = Kept::default();
        self.kept_results = Kept::default();
    }
}

/// A rule of a composition: the operator's number, the result's position, the number of the fact, and the library whose functions
/// are read.
type RuleKey = (usize, usize, u8, Option<Option<usize>>);

/// A Rust function in the words of its documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentedFunction {
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// The first sentence, as the rest of one.
    pub gives: Option<String>,
    /// Its refusals, as the rest of a sentence that begins with `if`; empty if there are none.
    pub refuses: Option<String>,
}

/// The number of an operator in [`Model::ops`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct OpId(pub usize);

/// The number of a function in [`Model::functions`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FunctionId(pub usize);

/// One operator.
#[derive(Clone, Debug)]
pub struct Op {
    /// Full name, e.g. `add.Tensor`.
    pub name: String,
    /// Name without overload, e.g. `add`.
    pub base: String,
    /// The signature, printed canonically.
    pub signature: String,
    /// The library that declares it, by its number among the parents of the configuration; `None` if the
    /// spec itself does.
    pub parent: Option<usize>,
    /// The span of the signature.
    pub span: Span,
    /// The span of the whole entry.
    pub entry: Span,
    /// File and line of the entry, as `ops.yaml:12`.
    pub location: String,
    /// Documentation, Markdown.
    pub doc: String,
    /// The public Rust function.
    pub rust_name: String,
    /// The overload that has the same function.
    pub merged: Option<Merged>,
    /// Arguments in signature order.
    pub args: Vec<Arg>,
    /// Results in signature order.
    pub outputs: Vec<Output>,
    /// Which forms to generate.
    pub forms: Forms,
    /// The argument that the operator is a method of; `None` if it is no method.
    pub receiver: Option<usize>,
    /// Conditions on the arguments, checked before inference.
    pub checks: Vec<CheckedCondition>,
    /// Shape and dtype inference; `None` for views, compositions without rules and host operators.
    pub infer: Option<Infer>,
    /// The dtypes that go together; empty if any do that the rules allow.
    pub combinations: Vec<Combination>,
    /// Arithmetic operations of a call of its kernel, by the entry; of an expression, each operation counts.
    pub flops: Option<Expr>,
    /// The implementation.
    pub body: Body,
    /// Backward formulas.
    pub derivatives: Vec<Derivative>,
    /// Arguments without gradient by declaration.
    pub non_differentiable: Vec<usize>,
    /// How tangents flow.
    pub forward: Forward,
    /// Argument values for tests and documents.
    pub samples: Vec<Sample>,
    /// Errors that tests allow, and checks that they skip.
    pub tolerances: Vec<Tolerance>,
    /// Rust operators that call this operator.
    pub operators: Vec<Operator>,
    /// Its job for the runtime.
    pub role: Option<Role>,
    /// Its kernels in another project.
    pub supplied: Option<Supplied>,
    /// An importer's findings about it.
    pub origin: Option<Note>,
    /// The operator this is another name of; it has no definition of its own then.
    pub alias_of: Option<OpId>,
    /// Facts about it, apart from its computation.
    pub facts: Facts,
}

/// Half of a pair of overloads that are one Rust function, because they differ in one argument only: a tensor of one,
/// a number of the other.
#[derive(Clone, Copy, Debug)]
pub struct Merged {
    /// The other overload.
    pub with: OpId,
    /// The argument that differs.
    pub argument: usize,
    /// Whether the function stands at this overload, that of tensors.
    pub leads: bool,
    /// Whether both have the in-place form. A form of one overload alone is a function of that one.
    pub inplace: bool,
    /// Whether both have the out form.
    pub out: bool,
}

/// One argument.
#[derive(Clone, Debug)]
pub struct Arg {
    /// Its name in the signature.
    pub name: String,
    /// Its meaning, Markdown; empty if nothing says it.
    pub doc: String,
    /// Its type.
    pub ty: Ty,
    /// The default, if a caller may leave it out.
    pub default: Option<Default>,
    /// Whether it stands after `*`.
    pub keyword_only: bool,
    /// The element type a kernel sees, for tensors.
    pub element: Element,
    /// Whether kernels want it row-major.
    pub contiguous: bool,
    /// Whether a loop made from an expression sees it rounded to the elements' dtype, for numbers.
    pub rounded: bool,
    /// Values it may have.
    pub constraints: Vec<Constraint>,
    /// Other names that calls by name may use.
    pub aliases: Vec<String>,
    /// Whether its elements decide a result's shape or dtype.
    pub value: ValueUse,
    /// The relation of a number to the elements, where the entry says it; see [`Op::number_use`].
    pub number: Option<NumberUse>,
}

/// A default value, of its argument's type.
#[derive(Clone, PartialEq, Debug)]
pub enum Default {
    /// Absent.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    Str(String),
    /// A list; of lists, if the argument is a list of lists.
    List(Vec<Default>),
    /// An element type.
    DType(DType),
    /// A memory format.
    MemoryFormat(MemoryFormat),
}

impl Default {
    /// Calls `visit` with each value that is no list: itself, or the items of all its lists.
    pub fn for_each_item(&self, visit: &mut dyn FnMut(&Default)) {
        match self {
            Default::List(items) => items.iter().for_each(|item| item.for_each_item(visit)),
            item => visit(item),
        }
    }
}

/// One result.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name, if declared.
    pub name: Option<String>,
    /// Its meaning, Markdown; empty if nothing says it.
    pub doc: String,
    /// Its type.
    pub ty: Ty,
    /// Its element type as a kernel sees it.
    pub element: Element,
    /// Whether it can have a gradient.
    pub differentiable: bool,
    /// Whether formulas may read it as something that no input changes, though it has no gradient.
    pub constant: bool,
    /// Whether only gradient formulas see it.
    pub hidden: bool,
    /// When it is there, if it may be absent.
    pub present: Option<Expr>,
}

/// Which forms exist besides the functional one.
#[derive(Clone, Debug, Default)]
pub struct Forms {
    /// Name of the in-place form.
    pub inplace: Option<String>,
    /// Name of the out form.
    pub out: Option<String>,
    /// The arguments that the in-place form writes, each with its result; empty if that is the first
    /// argument and the only result.
    pub pairs: Vec<(usize, usize)>,
}

/// One condition.
#[derive(Clone, Debug)]
pub struct CheckedCondition {
    /// The condition.
    pub condition: Expr,
    /// As written, for the message.
    pub text: String,
}

/// The name of a tensor's position in rules for each tensor of a list.
pub const POSITION: &str = "position";

/// Inference rules.
#[derive(Clone, Debug)]
pub struct Infer {
    /// How many tensors the only result has, if it is a list; the rules are then for each, by
    /// [`POSITION`].
    pub length: Option<Expr>,
    /// The sizes of each output.
    pub shapes: Vec<Expr>,
    /// The dtype of each output.
    pub dtypes: Vec<Expr>,
    /// The dtype that chooses the kernel.
    pub compute: Expr,
    /// The Rust function that says shape and dtype of every output. There are no `shapes` then, and `dtypes`
    /// are those of the arrays that kernels write.
    pub function: Option<String>,
    /// Data-dependent sizes of outputs, each with its upper bound.
    pub run_sizes: Vec<(String, Expr)>,
    /// The sizes of each output in terms of [`Infer::run_sizes`]; empty if there are none.
    pub run_shapes: Vec<Expr>,
}

impl Op {
    /// The file of the spec that has the entry: `ops/reductions.yaml`.
    pub fn file(&self) -> &str {
        self.location.rsplit_once(':').map_or("", |(file, _)| file)
    }

    /// Whether a parent library declares it.
    pub fn is_external(&self) -> bool {
        self.parent.is_some()
    }

    /// Whether it is a part of other operators, which readers of documents do not look for.
    pub fn is_private(&self) -> bool {
        self.facts.backward_only || self.name.starts_with('_')
    }

    /// The position of an argument.
    pub fn arg_index(&self, name: &str) -> Option<usize> {
        self.args.iter().position(|arg| arg.name == name)
    }

    /// The tensor arguments whose elements an expression reads, in order.
    pub fn read_tensors(&self, expr: &Expr) -> Vec<usize> {
        let mut read = std::collections::BTreeSet::new();
        expr.walk(&mut |part| {
            if let ExprKind::Variable(Variable::Arg(index)) = part.kind
                && self.args[index].ty.is_tensor()
            {
                read.insert(index);
            }
        });
        read.into_iter().collect()
    }

    /// The type of the call as an expression.
    pub fn result_type(&self) -> Ty {
        type_of(self.visible())
    }

    /// The type of all computed results, including those that users do not get.
    pub fn whole_type(&self) -> Ty {
        type_of(&self.outputs)
    }

    /// Whether every result is one tensor, there or not.
    pub fn returns_single_tensors(&self) -> bool {
        self.outputs.iter().all(|output| output.ty.kind == Kind::Tensor)
    }

    /// Whether some result may be absent.
    pub fn may_lack_results(&self) -> bool {
        self.outputs.iter().any(|output| output.ty.optional)
    }

    /// The results that callers get.
    pub fn visible(&self) -> &[Output] {
        let hidden = self.outputs.iter().rev().take_while(|output| output.hidden).count();
        &self.outputs[..self.outputs.len() - hidden]
    }

    /// Whether the result is a list of tensors.
    pub fn gives_list(&self) -> bool {
        matches!(self.outputs.as_slice(), [only] if only.ty.kind == Kind::Tensors)
    }

    /// The results that the in-place form returns, because it writes them into no argument.
    pub fn unpaired(&self) -> impl Iterator<Item = &Output> {
        let pairs = &self.forms.pairs;
        let free = move |index: &usize| !pairs.iter().any(|(_, output)| output == index);
        let outputs = if pairs.is_empty() { &[] } else { self.visible() };
        outputs.iter().enumerate().filter(move |(index, _)| free(index)).map(|(_, output)| output)
    }

    /// Whether every result is a tensor or a list of them.
    pub fn returns_tensors(&self) -> bool {
        self.outputs.iter().all(|output| matches!(output.ty.kind, Kind::Tensor | Kind::Tensors))
    }
}

fn type_of(outputs: &[Output]) -> Ty {
    match outputs {
        [] => Ty::new(Kind::Unit),
        [only] => only.ty.clone(),
        several => Ty::new(Kind::Tuple(several.iter().map(|output| output.ty.clone()).collect())),
    }
}
