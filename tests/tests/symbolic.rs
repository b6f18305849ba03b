//! Inference before sizes are known, for every operator and sample: what it says is what a call gives, with
//! sizes as numbers, and with a symbol for every size that is then bound to several numbers.

use std::collections::BTreeMap;

use opsmith::{DType, LIBRARY, Tensor, Value};
use opsmith_runtime::dispatch;
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::symbolic::{
    Argument, Bindings, Context, Inference, Meta, Origin, Outputs, Shape, Size, Symbol, infer,
    infer_composition,
};
use opsmith_runtime::{Arg, with_dtype};
use opsmith_tests::samples::{repeatable, samples};

/// A value as inference takes it.
enum Known {
    Tensor(Meta),
    Tensors(Vec<Meta>),
    OptionalTensors(Vec<Option<Meta>>),
    Plain(Value),
}

impl Known {
    fn argument(&self) -> Argument<'_> {
        match self {
            Known::Tensor(meta) => Argument::Tensor(meta),
            Known::Tensors(metas) => Argument::Tensors(metas),
            Known::OptionalTensors(metas) => Argument::OptionalTensors(metas),
            Known::Plain(value) => Argument::Plain(value.as_arg()),
        }
    }
}

/// The arguments with each tensor described by `describe`, constants where elements must be known.
fn known(op: &OpDef, values: &[Value], describe: &mut dyn FnMut(&Tensor) -> Meta) -> Vec<Known> {
    let each = |(value, value_use): (&Value, ValueUse)| {
        let mut describe = |tensor: &Tensor| {
            if value_use == ValueUse::Required { Meta::constant(tensor) } else { describe(tensor) }
        };
        match value {
            Value::Tensor(tensor) => Known::Tensor(describe(tensor)),
            Value::Tensors(tensors) => Known::Tensors(tensors.iter().map(describe).collect()),
            Value::OptionalTensors(tensors) => Known::OptionalTensors(
                tensors.iter().map(|tensor| tensor.as_ref().map(&mut describe)).collect(),
            ),
            other => Known::Plain(other.clone()),
        }
    };
    values.iter().zip(op.schema.args.iter().map(|arg| arg.value)).map(each).collect()
}

fn inferred(op: &'static OpDef, args: &[Known], context: &mut Context) -> opsmith::Result<Option<Outputs>> {
    let args: Vec<Argument<'_>> = args.iter().map(Known::argument).collect();
    Ok(match infer(op, &args, context)? {
        Inference::Tensors(outputs) => Some(outputs),
        Inference::Composition => Some(infer_composition(op, &args, context)?),
        Inference::Values => None,
    })
}

fn run(op: &'static OpDef, values: &[Value]) -> opsmith::Result<Vec<Tensor>> {
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    repeatable(op, || dispatch::invoke(op, &args)).map(|outs| outs.into_vec())
}

/// Every operator that returns tensors, with its samples.
fn cases(dtypes: &[DType]) -> impl Iterator<Item = (&'static OpDef, Vec<Value>)> {
    LIBRARY.ops.iter().filter(|op| op.host.is_none()).flat_map(move |op| {
        dtypes.iter().flat_map(|dtype| samples(op, *dtype)).map(move |values| (*op, values))
    })
}

#[test]
fn numbers_give_what_calls_give() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for (op, values) in cases(&[DType::F32, DType::I64, DType::C64]) {
        let Ok(outs) = run(op, &values) else { continue };
        let args = known(op, &values, &mut Meta::constant);
        let mut context = Context::new();
        match inferred(op, &args, &mut context) {
            Ok(None) => assert!(op.composite.is_some(), "{} says nothing", op.name),
            Ok(Some(outputs)) => {
                checked += 1;
                let given = outputs.outs.iter().map(|out| (out.dtype, out.layout()));
                // Strides of empty tensors and of dimensions of size 1 mean nothing.
                let real = outs.iter().map(|out| (out.dtype(), Some(out.layout().clone())));
                let same = |(a, b): ((DType, _), (DType, _))| a == b;
                if outputs.outs.len() != outs.len() || !given.zip(real).all(same) {
                    wrong.push(format!("{} {values:?}: {outputs:?}", op.name));
                }
                assert!(context.guards().is_empty(), "{}: nothing is open where all are numbers", op.name);
            }
            Err(error) => wrong.push(format!("{} {values:?}: {error}", op.name)),
        }
    }
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    // Each operator has samples of its own, fewer than the arguments that are made for one without.
    assert!(checked > 1300, "only {checked} samples were checked");
}

/// How many bindings of each sample are looked at.
const ENOUGH: usize = 8;

/// Which sizes of a sample are changed.
#[derive(Clone, Copy)]
enum Which {
    All,
    /// Those of this value.
    Value(i64),
    /// Those of this dimension.
    Dim(usize),
}

/// How they are changed.
const CHANGES: [fn(i64) -> i64; 8] = [
    |size| size + 1,
    |size| size * 2,
    |size| size * 3,
    |size| size + 4,
    |size| size * 2 + 2,
    |size| size * 6,
    |size| size + 12,
    |size| (size - 1).max(2),
];

#[derive(Clone, Copy)]
struct Change(Which, fn(i64) -> i64);

impl Change {
    /// 0 and 1 have a meaning of their own and stay.
    fn of(self, dim: usize, size: i64) -> i64 {
        let changes = match self.0 {
            Which::All => true,
            Which::Value(value) => size == value,
            Which::Dim(wanted) => dim == wanted,
        };
        if size < 2 || !changes { size } else { self.1(size) }
    }

    fn shape(self, shape: &[i64]) -> Vec<i64> {
        shape.iter().enumerate().map(|(dim, size)| self.of(dim, *size)).collect()
    }
}

/// Every change of the sizes that are there, none the first.
fn changes(sizes: &[(Symbol, usize, i64)]) -> Vec<Change> {
    let mut which = vec![Which::All];
    which.extend((0..3).map(Which::Dim));
    let mut values: Vec<i64> = sizes.iter().map(|size| size.2).collect();
    values.sort_unstable();
    values.dedup();
    which.extend(values.into_iter().map(Which::Value));
    let each = which.into_iter().flat_map(|which| CHANGES.map(|how| Change(which, how)));
    std::iter::once(Change(Which::All, |size| size)).chain(each).collect()
}

/// A tensor of another shape with the elements of the first, repeated.
fn resized(tensor: &Tensor, sizes: &[i64]) -> Tensor {
    let count = sizes.iter().product::<i64>() as usize;
    with_dtype!(tensor.dtype(), T => {
        let elements = tensor.to_vec::<T>().unwrap();
        let many: Vec<T> = elements.iter().cycle().copied().take(count).collect();
        let many = if many.is_empty() { vec![T::default(); count] } else { many };
        Tensor::from_slice(&many, sizes).unwrap()
    })
}

fn changed(op: &OpDef, values: &[Value], change: Change) -> Vec<Value> {
    let tensor = |tensor: &Tensor| resized(tensor, &change.shape(tensor.shape()));
    let each = |(value, value_use): (&Value, ValueUse)| match value {
        // Constants stay as they are.
        value if value_use == ValueUse::Required => value.clone(),
        Value::Tensor(one) => Value::Tensor(tensor(one)),
        Value::Tensors(many) => Value::Tensors(many.iter().map(tensor).collect()),
        Value::OptionalTensors(many) => {
            Value::OptionalTensors(many.iter().map(|one| one.as_ref().map(tensor)).collect())
        }
        other => other.clone(),
    };
    values.iter().zip(op.schema.args.iter().map(|arg| arg.value)).map(each).collect()
}

#[test]
fn symbols_give_what_calls_give_when_they_are_bound() {
    let (mut ops, mut bound, mut unknown, mut narrow) =
        (BTreeMap::new(), 0, BTreeMap::new(), BTreeMap::new());
    let mut wrong = Vec::new();
    for (op, values) in cases(&[DType::F32]) {
        if run(op, &values).is_err() {
            continue;
        }
        let mut context = Context::new();
        let mut sizes: Vec<(Symbol, usize, i64)> = Vec::new();
        let symbols = &mut context.symbols;
        let args = known(op, &values, &mut |tensor| {
            let shape: Shape = tensor
                .shape()
                .iter()
                .enumerate()
                .map(|(dim, &size)| {
                    let symbol = symbols.fresh_like(size);
                    sizes.push((symbol, dim, size));
                    Size::from(symbol)
                })
                .collect();
            Meta { device: tensor.device(), ..Meta::new(tensor.dtype(), shape) }
        });
        let outputs = match inferred(op, &args, &mut context) {
            Ok(Some(outputs)) => outputs,
            Ok(None) => continue,
            Err(error) => {
                wrong.push(format!("{} {values:?}: {error}", op.name));
                continue;
            }
        };
        let mut accepted = 0;
        for change in changes(&sizes) {
            let values = changed(op, &values, change);
            let Ok(outs) = run(op, &values) else { continue };
            let pairs: Vec<(Symbol, i64)> =
                sizes.iter().map(|(symbol, dim, size)| (*symbol, change.of(*dim, *size))).collect();
            let mut bindings = context.symbols.bind(&pairs).unwrap();
            if let Err(error) = context.check(&bindings) {
                narrow.entry(op.name).or_insert(error.to_string());
                continue;
            }
            accepted += 1;
            if accepted > ENOUGH {
                break;
            }
            for (out, real) in outputs.outs.iter().zip(&outs) {
                set_found(&context, &mut bindings, out, real);
                let all_known = out.shape.sizes().is_some_and(|sizes| !sizes.iter().any(Size::is_unknown));
                if !all_known {
                    unknown.entry(op.name).or_insert(out.shape.to_string());
                }
                let same = match out.bind(&bindings) {
                    Some(layout) => layout.sizes[..] == *real.shape() && same_place(out, &layout, real),
                    None => !all_known,
                };
                if !same || out.dtype != real.dtype() || outputs.outs.len() != outs.len() {
                    wrong.push(format!("{} at {:?}: {out:?}, not {:?}", op.name, pairs, real.layout()));
                }
            }
            bound += 1;
        }
        let most = ops.entry(op.name).or_insert(0);
        *most = accepted.max(*most);
    }
    assert!(wrong.is_empty(), "{} of {bound}:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    // Three bindings and the sample's own, unless attributes say what the sizes are.
    let few: Vec<&str> = ops.iter().filter(|(_, most)| **most < 4).map(|(name, _)| *name).collect();
    assert_eq!(few, ["native_group_norm", "native_group_norm_backward"], "of {} operators", ops.len());
    assert!(ops.len() > 250 && bound > 4500, "{} operators, {bound} bindings", ops.len());
    // A product of two quotients is no formula that is looked for; nor is what three operands broadcast to, or one
    // of two sizes that are equal in the example only, in a composition.
    // Nor is a quotient of several sizes, such as the places of a convolution with strides, or the size of a piece.
    let open = [
        "chunk",
        "conv1d",
        "conv2d",
        "cosine_similarity",
        "grid_sampler_2d_along",
        "im2col",
        "slice.Tensor",
        "split.Tensor",
    ];
    assert_eq!(unknown.keys().copied().collect::<Vec<_>>(), open, "{unknown:#?}");
    // How many results there are depends on the first size; and a composition that two sizes have to be multiples for
    // is accepted at the example's alone.
    let narrowed = ["conv1d", "conv2d", "split.Tensor", "unbind.int"];
    assert_eq!(narrow.keys().copied().collect::<Vec<_>>(), narrowed, "{narrow:#?}");
}

/// Gives sizes that only the run tells the values that it told, which have to lie inside their bounds.
fn set_found(context: &Context, bindings: &mut Bindings, out: &Meta, real: &Tensor) {
    for (size, found) in out.shape.sizes().unwrap_or_default().iter().zip(real.shape()) {
        if let Some(symbol) = size.as_symbol()
            && *context.symbols.origin(symbol) == Origin::Run
            && bindings.get(symbol).is_none()
        {
            context.symbols.set(bindings, symbol, *found).unwrap();
        }
    }
}

/// Whether strides and offset are the real ones, but for dimensions of which there is one or none.
fn same_place(out: &Meta, layout: &opsmith_runtime::Layout, real: &Tensor) -> bool {
    use opsmith_runtime::symbolic::Strides;
    out.strides == Strides::Unknown
        || real.numel() == 0
        || layout.offset == real.layout().offset
            && (0..real.dim()).all(|dim| real.shape()[dim] == 1 || layout.strides[dim] == real.strides()[dim])
}
