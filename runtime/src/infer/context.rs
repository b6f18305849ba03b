//! The interface of hand-written inference functions.
//!
//! In: the arguments of a call, with sizes that are numbers or symbolic. Out: shape and dtype of every result. One
//! function serves eager calls and graphs. A request for a missing or unknown value is an error that names the right
//! request or declaration.

mod attribute;
mod value;

use opsmith_core::DType;
use smallvec::SmallVec;

pub use attribute::Attribute;

use super::device_of;
use crate::arg::Arg;
use crate::error::{Error, Result};
use crate::facts::ValueUse;
use crate::infer::symbolic::{ArgumentMeta, Condition, Context, Guard, Meta, Shape, Size, Symbols};
use crate::op::{ArgDef, ArgKind, Inferred, OpDef, OutSpec};
use crate::tensor::Tensor;

/// A hand-written inference function: `infer: shapes::mine` in a spec names one of the kernels crate.
pub type InferFunction = fn(&mut InferContext<'_>) -> Result<()>;

/// An input, attribute or output: by name, or by position among those of its kind in the signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key<'k> {
    /// By name.
    Name(&'k str),
    /// By position among the declarations; absent ones count.
    Index(usize),
}

impl<'k> From<&'k str> for Key<'k> {
    fn from(name: &'k str) -> Key<'k> {
        Key::Name(name)
    }
}

impl From<usize> for Key<'_> {
    fn from(index: usize) -> Self {
        Key::Index(index)
    }
}

/// A call whose results are to be inferred.  Inputs are the tensor arguments, attributes all others; both are found by
/// name, or by position among their kind in the order of declaration. Outputs start unset, and the function must set
/// every one.
///
/// ```
/// use opsmith_runtime::infer::InferContext;
/// use opsmith_runtime::Result;
///
/// /// Rows of `x`, once for each of `xs`.
/// fn rows(context: &mut InferContext<'_>) -> Result<()> {
///     let rows = context.size("x", 0)?;
///     let count = context.instances("xs")? as i64;
///     let dtype = context.dtype("x")?;
///     context.set_shape(0, [rows * count.into()])?;
///     context.set_dtype(0, dtype)
/// }
/// ```
pub struct InferContext<'a> {
    op: &'static OpDef,
    args: &'a [ArgumentMeta<'a>],
    context: &'a mut Context,
    outs: SmallVec<[(Option<Shape>, Option<DType>); 2]>,
}

impl<'a> InferContext<'a> {
    pub(crate) fn new(op: &'static OpDef, args: &'a [ArgumentMeta<'a>], context: &'a mut Context) -> Self {
        let outs = SmallVec::from_elem((None, None), op.schema.returns.len());
        InferContext { op, args, context, outs }
    }

    /// The operator's full name.
    pub fn op(&self) -> &'static str {
        self.op.name
    }

    /// How many inputs are declared.
    pub fn input_count(&self) -> usize {
        self.op.schema.args.iter().filter(|arg| is_input(arg)).count()
    }

    /// How many attributes are declared.
    pub fn attribute_count(&self) -> usize {
        self.op.schema.args.len() - self.input_count()
    }

    /// Number of tensors of an input: the length of a list, else 1, or 0 if it is absent.
    ///
    /// # Errors
    /// If there is no such input.
    pub fn instances<'k>(&self, key: impl Into<Key<'k>>) -> Result<usize> {
        Ok(match self.args[self.find(key.into(), true)?] {
            ArgumentMeta::Tensor(_) => 1,
            ArgumentMeta::Tensors(metas) => metas.len(),
            ArgumentMeta::OptionalTensors(metas) => metas.len(),
            _ => 0,
        })
    }

    /// An input that is one tensor.
    ///
    /// # Errors
    /// If there is no such input, it is absent, or it is a list.
    pub fn input<'k>(&self, key: impl Into<Key<'k>>) -> Result<&'a Meta> {
        let at = self.find(key.into(), true)?;
        self.one(at)?.ok_or_else(|| {
            let name = self.op.schema.args[at].name;
            Error::argument(format!("the input `{name}` is absent"))
                .with_help("ask for it with `optional_input`, which gives none then")
        })
    }

    /// An input that may be absent.
    ///
    /// # Errors
    /// If there is no such input, or it is a list.
    pub fn optional_input<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<&'a Meta>> {
        let at = self.find(key.into(), true)?;
        self.one(at)
    }

    /// One tensor of a list input, by the input and the position in the list; `None` for an absent tensor of the list.
    ///
    /// # Errors
    /// If there is no such input, it is not a list, or the list is shorter.
    pub fn variadic_input<'k>(&self, key: impl Into<Key<'k>>, position: usize) -> Result<Option<&'a Meta>> {
        let at = self.find(key.into(), true)?;
        let found = match self.args[at] {
            ArgumentMeta::Tensors(metas) => metas.get(position).map(Some),
            ArgumentMeta::OptionalTensors(metas) => metas.get(position).map(Option::as_ref),
            _ => {
                let name = self.op.schema.args[at].name;
                return Err(Error::argument(format!("the input `{name}` is no list of tensors"))
                    .with_help("ask for it with `input` or `optional_input`"));
            }
        };
        found.ok_or_else(|| {
            let name = self.op.schema.args[at].name;
            let count = self.instances(name).unwrap_or(0);
            Error::index(format!("`{name}[{position}]` is outside the list of {count}"))
        })
    }

    /// The shape of an input.
    ///
    /// # Errors
    /// As [`InferContext::input`].
    pub fn shape<'k>(&self, key: impl Into<Key<'k>>) -> Result<&'a Shape> {
        Ok(&self.input(key)?.shape)
    }

    /// One size of an input; negative dimensions count from the end. Unknown if the rank is.
    ///
    /// # Errors
    /// As [`InferContext::input`], and if there is no such dimension.
    pub fn size<'k>(&self, key: impl Into<Key<'k>>, dim: i64) -> Result<Size> {
        let Some(sizes) = self.shape(key)?.sizes() else { return Ok(Size::Unknown) };
        let dim = crate::layout::wrap_dim(dim, sizes.len())?;
        sizes.get(dim).cloned().ok_or_else(|| Error::index("a tensor without dimensions has no sizes"))
    }

    /// The dtype of an input.
    ///
    /// # Errors
    /// As [`InferContext::input`].
    pub fn dtype<'k>(&self, key: impl Into<Key<'k>>) -> Result<DType> {
        Ok(self.input(key)?.dtype)
    }

    /// The shape that two shapes broadcast to; conditions on symbolic sizes become requirements.
    ///
    /// # Errors
    /// If they cannot broadcast for any values of the sizes.
    pub fn broadcast(&mut self, a: &Shape, b: &Shape) -> Result<Shape> {
        crate::infer::symbolic::broadcast_shapes(self.op, self.context, a, b)
    }

    /// An attribute.
    ///
    /// # Errors
    /// If there is no such attribute, it has another type, or it is a symbolic size and was not requested as a
    /// [`Size`].
    pub fn attribute<'k, T: Attribute<'a>>(&self, key: impl Into<Key<'k>>) -> Result<T> {
        let at = self.find(key.into(), false)?;
        T::read(self.args[at]).ok_or_else(|| attribute::refused::<T>(&self.op.schema.args[at], self.args[at]))
    }

    /// The symbol table, for quotients and similar operations.
    pub fn symbols(&mut self) -> &mut Symbols {
        &mut self.context.symbols
    }

    /// Whether two sizes are equal; an undecided condition can be required with [`InferContext::require`].
    pub fn equal(&self, a: &Size, b: &Size) -> Condition {
        self.context.equal(a, b)
    }

    /// Whether the first size is less than the second.
    pub fn less(&self, a: &Size, b: &Size) -> Condition {
        self.context.less(a, b)
    }

    /// Requires a condition: checked now if it is decided, else when the sizes are known.
    ///
    /// # Errors
    /// If it does not hold, with the reason.
    pub fn require(&mut self, condition: Condition, reason: &str) -> Result<()> {
        if condition == Condition::False {
            return Err(Error::shape(reason));
        }
        self.context.assume(Guard { condition, op: self.op.name, reason: reason.to_owned() });
        Ok(())
    }

    /// Sets the shape of an output.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn set_shape<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        sizes: impl IntoIterator<Item = Size>,
    ) -> Result<()> {
        self.set_whole_shape(key, sizes.into_iter().collect())
    }

    /// Sets the shape of an output to one that may be of unknown rank.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn set_whole_shape<'k>(&mut self, key: impl Into<Key<'k>>, shape: Shape) -> Result<()> {
        let at = self.output(key.into())?;
        self.outs[at].0 = Some(shape);
        Ok(())
    }

    /// Sets the dtype of an output.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn set_dtype<'k>(&mut self, key: impl Into<Key<'k>>, dtype: DType) -> Result<()> {
        let at = self.output(key.into())?;
        self.outs[at].1 = Some(dtype);
        Ok(())
    }

    /// The results, if every output was set.
    pub(crate) fn finish(self) -> Result<SmallVec<[(Shape, DType); 2]>> {
        let op = self.op;
        self.outs
            .into_iter()
            .enumerate()
            .map(|(at, out)| match out {
                (Some(shape), Some(dtype)) => Ok((shape, dtype)),
                (shape, _) => {
                    let what = if shape.is_none() { "shape" } else { "dtype" };
                    let name = op.schema.returns[at].name.map_or(format!("{at}"), |name| format!("`{name}`"));
                    Err(Error::new(
                        crate::error::ErrorKind::NotImplemented,
                        format!("its inference function leaves the {what} of output {name} unset"),
                    )
                    .with_help(format!("call `set_{what}` for every output, whatever the arguments are")))
                }
            })
            .collect()
    }

    /// The position of an argument: an input, or an attribute.
    fn find(&self, key: Key<'_>, input: bool) -> Result<usize> {
        let args = self.op.schema.args;
        let mut of_kind = args.iter().enumerate().filter(|(_, arg)| is_input(arg) == input);
        let found = match key {
            Key::Name(name) => self.op.argument(name).filter(|at| is_input(&args[*at]) == input),
            Key::Index(index) => of_kind.clone().nth(index).map(|(at, _)| at),
        };
        found.ok_or_else(|| {
            let kind = if input { "input" } else { "attribute" };
            let names: Vec<&str> = of_kind.by_ref().map(|(_, arg)| arg.name).collect();
            let what = match key {
                Key::Name(name) => format!("there is no {kind} `{name}`"),
                Key::Index(index) => format!("there is no {kind} {index}"),
            };
            Error::argument(what).with_help(match names.is_empty() {
                true => format!("the operator has no {kind}s"),
                false => format!("the {kind}s are {}, counted from 0", names.join(", ")),
            })
        })
    }

    /// An input that is a single tensor.
    fn one(&self, at: usize) -> Result<Option<&'a Meta>> {
        match self.args[at] {
            ArgumentMeta::Tensor(meta) => Ok(Some(meta)),
            ArgumentMeta::Tensors(_) | ArgumentMeta::OptionalTensors(_) => {
                let name = self.op.schema.args[at].name;
                Err(Error::argument(format!("the input `{name}` is a list of tensors"))
                    .with_help("ask for each with `variadic_input`, and for how many with `instances`"))
            }
            _ => Ok(None),
        }
    }

    fn output(&self, key: Key<'_>) -> Result<usize> {
        let returns = self.op.schema.returns;
        let found = match key {
            Key::Name(name) => returns.iter().position(|output| output.name == Some(name)),
            Key::Index(index) => Some(index).filter(|index| *index < returns.len()),
        };
        found.ok_or_else(|| {
            Error::argument(format!("there is no output {key:?}"))
                .with_help(format!("the operator has {}, counted from 0", returns.len()))
        })
    }
}

fn is_input(arg: &ArgDef) -> bool {
    matches!(arg.ty.kind, ArgKind::Tensor | ArgKind::Tensors | ArgKind::OptionalTensors)
}

/// Runs a hand-written function for an eager call. `written` is the fixed dtype that the kernel writes into each
/// output; `None` for the dtype that selects the kernel.
///
/// # Errors
/// Errors of the function; if it leaves an output unset, or sets another dtype than the kernel writes.
pub fn infer_by(
    op: &'static OpDef,
    args: &[Arg<'_>],
    function: InferFunction,
    compute: DType,
    written: &[Option<DType>],
) -> Result<Inferred> {
    let metas: SmallVec<[Described; 8]> =
        op.schema.args.iter().zip(args).map(|(def, arg)| Described::of(*arg, def.value)).collect();
    let arguments: SmallVec<[ArgumentMeta<'_>; 8]> =
        metas.iter().zip(args).map(|(meta, arg)| meta.argument(*arg)).collect();
    let mut context = Context::new();
    let mut call = InferContext::new(op, &arguments, &mut context);
    function(&mut call)?;
    let outs = call.finish()?.into_iter().enumerate().map(|(at, (shape, dtype))| {
        let expected = written.get(at).copied().flatten().unwrap_or(compute);
        if dtype != expected {
            return Err(Error::dtype(format!(
                "its inference function gives output {at} the dtype {dtype}, and the kernel writes {expected}"
            ))
            .with_help("say with `dtype: [...]` which outputs have a fixed dtype, and with `compute:` what chooses the kernel"));
        }
        let sizes = shape.known().ok_or_else(|| {
            Error::shape(format!("its inference function gives output {at} the shape {shape}"))
                .with_help("sizes are known in a call that runs; compute them from those of the inputs")
        })?;
        crate::layout::checked_numel(&sizes)?;
        Ok(OutSpec { sizes, dtype })
    });
    Ok(Inferred { outs: outs.collect::<Result<_>>()?, compute, device: device_of(args)? })
}

/// The description of an argument of an eager call, with elements only where they are declared.
enum Described {
    One(Meta),
    Many(Vec<Meta>),
    Some(Vec<Option<Meta>>),
    No,
}

impl Described {
    fn of(arg: Arg<'_>, value: ValueUse) -> Described {
        // A meta tensor is its own description.
        let meta = |tensor: &Tensor| match !value.counts(tensor.dtype()) || tensor.storage().is_meta() {
            true => Meta::describe(tensor),
            false => Meta::constant(tensor),
        };
        match arg {
            Arg::Tensor(tensor) => Described::One(meta(tensor)),
            Arg::Tensors(tensors) => Described::Many(tensors.iter().map(meta).collect()),
            Arg::OptionalTensors(tensors) => {
                Described::Some(tensors.iter().map(|tensor| tensor.as_ref().map(meta)).collect())
            }
            _ => Described::No,
        }
    }

    fn argument<'a>(&'a self, arg: Arg<'a>) -> ArgumentMeta<'a> {
        match self {
            Described::One(meta) => ArgumentMeta::Tensor(meta),
            Described::Many(metas) => ArgumentMeta::Tensors(metas),
            Described::Some(metas) => ArgumentMeta::OptionalTensors(metas),
            Described::No => ArgumentMeta::Plain(arg),
        }
    }
}
