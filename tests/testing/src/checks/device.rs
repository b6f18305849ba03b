//! A device against the host: the same results, in every form, for gradients, and in graphs.
//!
//! In: an operator, a device with kernels for it, and how far results may differ. Out: the differences.

use opsmith::{Complex64, DType, Device, Result, Tensor, TensorOps, Value};
use opsmith_graph::{Graph, InputSpec};
use opsmith_runtime::Arg;
use opsmith_runtime::generated::call as front;
use opsmith_runtime::op::{ArgKind, OpDef};

use super::graph::{difference, gradients, gradients_of, untraced, variants};
use crate::calls::{call, tensors, with_tensors};
use crate::report::Report;
use crate::results::{self, CheckOutcome};
use crate::samples::{arguments, repeatable};

/// The difference that results of a device may have from those of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// None: the bits are the same.
    Bits,
    /// So many units in the last place of the largest element of a result, as of other libraries of functions. Integers and
    /// truth values are the same.
    Units(u32),
}

/// Dtypes that calls are compared in, unless others are chosen.
const DTYPES: [DType; 6] = [DType::F64, DType::F32, DType::C128, DType::BF16, DType::I64, DType::Bool];

/// A form of a call, by the name of its check.
type NamedForm = (&'static str, fn(&'static OpDef, &[Value]) -> Formed);

const FORMS: [NamedForm; 3] = [("forward", functional), ("inplace", inplace), ("out", out)];

/// The functional, in-place and out forms of every sample.
pub fn forms_on(op: &'static OpDef, device: Device, agreement: Agreement) -> Report {
    forms_in(op, device, agreement, DTYPES)
}

/// [`forms_on`] in these dtypes.
pub fn forms_in(
    op: &'static OpDef,
    device: Device,
    agreement: Agreement,
    dtypes: impl IntoIterator<Item = DType>,
) -> Report {
    let mut report = Report::default();
    for dtype in dtypes {
        for (check, form) in FORMS {
            report.add(recorded(op, dtype, check, form_in(op, device, agreement, dtype, form)));
        }
    }
    report
}

/// Records the comparisons of a dtype, if there are some.
fn recorded(op: &OpDef, dtype: DType, check: &str, found: Report) -> Report {
    if found.compared > 0 {
        results::record_on_device(op, dtype, check, &CheckOutcome::from(&found));
    }
    found
}

fn form_in(
    op: &'static OpDef,
    device: Device,
    agreement: Agreement,
    dtype: DType,
    form: fn(&'static OpDef, &[Value]) -> Formed,
) -> Report {
    let mut report = Report::default();
    for (number, args) in arguments(op, dtype).into_iter().enumerate() {
        let Some(host) = repeatable(op, || form(op, &args)) else { continue };
        let Ok(expected) = host else { continue };
        let moved = there(op, &args, device);
        let found = moved.map(|moved| repeatable(op, || form(op, &moved)));
        let wrong = match found {
            Ok(Some(Ok(found))) => misplaced(&found, device)
                .or_else(|| agreement.difference(&found, &expected, Terms::of_results(dtype))),
            Ok(Some(Err(error))) | Err(error) => Some(error.to_string()),
            Ok(None) => Some("there is no such form".to_owned()),
        };
        report.compare(wrong.map(|wrong| {
            format!("{} ({}), {dtype} sample {number} on {device}: {wrong}", op.name, op.location)
        }));
    }
    report
}

/// The gradients of every sample, for tensors on the device and for host tensors that are moved there.
pub fn gradients_on(op: &'static OpDef, device: Device, agreement: Agreement) -> Report {
    let mut report = Report::default();
    if op.host.is_some() {
        return report;
    }
    for dtype in [DType::F64, DType::C128, DType::F32] {
        report.add(recorded(op, dtype, "gradient", gradients_in(op, device, agreement, dtype)));
    }
    report
}

fn gradients_in(op: &'static OpDef, device: Device, agreement: Agreement, dtype: DType) -> Report {
    let mut report = Report::default();
    for (number, args) in arguments(op, dtype).into_iter().enumerate() {
        let Ok(inputs) = leaves(&tensors(&args)) else { continue };
        let Ok(expected) = repeatable(op, || gradients(op, &args, &inputs)) else { continue };
        if expected.is_empty() {
            continue;
        }
        let nearby = || (0..NUDGES).map_while(|change| nearby(op, &args, &inputs, change).ok()).collect();
        let mut compare = |what: &str, device: Device, found: Result<Vec<Tensor>>, expected: &[Tensor]| {
            let wrong = match found {
                Ok(found) => misplaced(&found, device).or_else(|| {
                    let first = agreement.difference(&found, expected, Terms::of_gradients(dtype));
                    first.filter(|_| !agreement.explains(&found, expected, nearby))
                }),
                Err(error) => Some(error.to_string()),
            };
            report.compare(wrong.map(|wrong| {
                format!("{} ({}), {dtype} sample {number}, {what}: {wrong}", op.name, op.location)
            }));
        };
        let own = all_on(&tensors(&args), device).and_then(|inputs| leaves(&inputs));
        let found = own.and_then(|inputs| repeatable(op, || gradients(op, &args, &inputs)));
        compare("gradients of the device's tensors", device, found, &expected);
        // Movement produces row-major tensors.
        let Ok(expected) = expected.iter().map(opsmith::to_copy).collect::<Result<Vec<Tensor>>>() else {
            continue;
        };
        let through = repeatable(op, || {
            let moved = all_on(&inputs, device)?;
            let outs = call(op, &with_tensors(&args, &moved))?;
            gradients_of(&outs, &inputs)
        });
        compare("gradients of the host's tensors, moved", Device::CPU, through, &expected);
    }
    report
}

/// Every sample as a graph traced with tensors of the device.
pub fn graphs_on(op: &'static OpDef, device: Device, agreement: Agreement) -> Report {
    let mut report = Report::default();
    if op.host.is_some() {
        return report;
    }
    for dtype in [DType::F64, DType::F32] {
        report.add(recorded(op, dtype, "graph", graphs_in(op, device, agreement, dtype)));
    }
    report
}

fn graphs_in(op: &'static OpDef, device: Device, agreement: Agreement, dtype: DType) -> Report {
    let mut report = Report::default();
    for (number, args) in arguments(op, dtype).into_iter().enumerate() {
        let Ok(eager) = repeatable(op, || call(op, &args)) else { continue };
        let Ok(moved) = there(op, &args, device) else { continue };
        let inputs = tensors(&moved);
        let specs: Vec<InputSpec> = inputs.iter().map(InputSpec::from).collect();
        let function = |inputs: &[Tensor]| call(op, &with_tensors(&moved, inputs));
        let what = format!("{dtype} sample {number} as a graph on {device}");
        let graph = match repeatable(op, || Graph::trace(function, &specs)) {
            Ok(graph) => graph,
            Err(error) => {
                untraced(&mut report, op, &what, &error);
                continue;
            }
        };
        for (passes, graph) in variants(&graph, false) {
            // The second run into the same outputs is recorded where it can be, and a later one replays it.
            let mut found = Vec::new();
            let mut run = || repeatable(op, || graph.run_into(&inputs, &mut found));
            let wrong = match (0..3).try_for_each(|_| run()) {
                Ok(()) => misplaced(&found, device)
                    .or_else(|| agreement.difference(&found, &eager, Terms::of_results(dtype))),
                Err(error) => Some(error.to_string()),
            };
            report.compare(
                wrong.map(|wrong| format!("{} ({}), {what}, {passes}: {wrong}", op.name, op.location)),
            );
        }
    }
    report
}

/// The terms that results are sums of.
#[derive(Clone, Copy)]
struct Terms {
    /// The dtype of their arithmetic.
    dtype: DType,
    /// Their size, where results may cancel to less.
    size: f64,
}

impl Terms {
    fn of_results(dtype: DType) -> Terms {
        Terms { dtype, size: 0.0 }
    }

    /// Gradients start from weights of about one, from which those of normalised results nearly cancel.
    fn of_gradients(dtype: DType) -> Terms {
        Terms { dtype, size: 1.0 }
    }
}

impl Agreement {
    /// The first difference that is too large.
    fn difference(self, found: &[Tensor], expected: &[Tensor], of: Terms) -> Option<String> {
        let first = difference(found, expected);
        match self {
            Agreement::Bits => first,
            Agreement::Units(units) => first.filter(|_| !agree(found, expected, of, units)),
        }
    }

    /// Whether the results differ from those expected by no more units than these change by if operands change by one: so do
    /// those of a backward stable algorithm, as of ill-conditioned systems of equations. A change of half of the digits is no
    /// explanation: another element was chosen.
    fn explains(
        self,
        found: &[Tensor],
        expected: &[Tensor],
        nearby: impl FnOnce() -> Vec<Vec<Tensor>>,
    ) -> bool {
        let Agreement::Units(units) = self else { return false };
        let nearby = nearby();
        found.len() == expected.len()
            && found.iter().zip(expected).enumerate().all(|(index, (found, expected))| {
                let most = unit(expected.dtype()).map_or(0.0, f64::sqrt) * largest(expected);
                let changes = nearby.iter().filter_map(|near| Some(distance(near.get(index)?, expected)));
                let change = changes.filter(|change| *change <= most).fold(0.0, f64::max);
                distance(found, expected) <= f64::from(units) * change
            })
    }
}

/// The largest absolute value of a tensor's finite numbers.
fn largest(tensor: &Tensor) -> f64 {
    let numbers = parts(tensor).unwrap_or_default();
    numbers.iter().filter(|x| x.is_finite()).fold(0.0, |most, x| most.max(x.abs()))
}

/// The largest difference of two tensors' numbers; infinite if they have different forms or places without a number.
fn distance(a: &Tensor, b: &Tensor) -> f64 {
    if (a.dtype(), a.shape()) != (b.dtype(), b.shape()) {
        return f64::INFINITY;
    }
    let (Ok(a), Ok(b)) = (parts(a), parts(b)) else { return f64::INFINITY };
    let apart = |(a, b): (&f64, &f64)| match a == b || a.is_nan() && b.is_nan() {
        true => 0.0,
        false if (a - b).is_nan() => f64::INFINITY,
        false => (a - b).abs(),
    };
    a.iter().zip(&b).map(apart).fold(0.0, f64::max)
}

/// The numbers of a tensor in row-major order, complex ones as their parts.
fn parts(tensor: &Tensor) -> Result<Vec<f64>> {
    let dtype = if tensor.dtype().is_complex() { DType::C128 } else { DType::F64 };
    let wide = tensor.to_device(Device::CPU)?.to_dtype(dtype)?;
    match dtype {
        DType::C128 => Ok(wide.to_vec::<Complex64>()?.iter().flat_map(|z| [z.re, z.im]).collect()),
        _ => wide.to_vec(),
    }
}

/// Number of changed calls that show how much a result depends on the last places of operands.
const NUDGES: usize = 4;

/// The host's gradients for inputs that differ in the last place.
fn nearby(op: &'static OpDef, args: &[Value], inputs: &[Tensor], change: usize) -> Result<Vec<Tensor>> {
    let nudged = inputs.iter().map(|input| nudged(input, change)).collect::<Result<Vec<Tensor>>>()?;
    let inputs = leaves(&nudged)?;
    repeatable(op, || gradients(op, args, &inputs))
}

/// The tensor with each number changed by a unit in the last place, up or down by its place and the number of the change.
fn nudged(tensor: &Tensor, change: usize) -> Result<Tensor> {
    let Some(unit) = unit(tensor.dtype()) else { return Ok(tensor.clone()) };
    let sign = |at: usize| if ((at * 31 + change * 17) % 7).is_multiple_of(2) { 1.0 } else { -1.0 };
    let factors: Vec<f64> = (0..tensor.numel() as usize).map(|at| 1.0 + sign(at) * unit).collect();
    let factors = Tensor::from_slice(&factors, tensor.shape())?;
    opsmith::autograd::no_grad(|| tensor.mul(&factors)?.to_dtype(tensor.dtype()))
}

/// Whether results have the same form, and their floats differ by no more than so many units. A result of more digits than the
/// operands' arithmetic, such as the logarithms of attention, has that arithmetic's units.
fn agree(found: &[Tensor], expected: &[Tensor], of: Terms, units: u32) -> bool {
    let of_arithmetic = match of.dtype {
        DType::F16 | DType::BF16 | DType::F32 | DType::C64 => f64::from(f32::EPSILON),
        _ => 0.0,
    };
    // A composition in place of the host's kernel may lay its result out in another way.
    let form = |tensor: &Tensor| (tensor.dtype(), tensor.shape().to_vec());
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| {
            form(found) == form(expected)
                && match unit(expected.dtype()) {
                    None => difference(std::slice::from_ref(found), std::slice::from_ref(expected)).is_none(),
                    Some(unit) => {
                        elements_agree(found, expected, f64::from(units) * unit.max(of_arithmetic), of.size)
                    }
                }
        })
}

/// The distance of neighbours near one; `None` of dtypes without fractions.
fn unit(dtype: DType) -> Option<f64> {
    Some(match dtype {
        DType::F64 | DType::C128 => f64::EPSILON,
        DType::F32 | DType::C64 => f64::from(f32::EPSILON),
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => return None,
    })
}

fn elements_agree(found: &Tensor, expected: &Tensor, bound: f64, size: f64) -> bool {
    let (Ok(found), Ok(expected)) = (parts(found), parts(expected)) else { return false };
    let largest = expected.iter().filter(|x| x.is_finite()).fold(size, |most: f64, x| most.max(x.abs()));
    found.iter().zip(&expected).all(|(found, expected)| {
        found == expected
            || found.is_nan() && expected.is_nan()
            || (found - expected).abs() <= bound * largest
    })
}

type Formed = Option<Result<Vec<Tensor>>>;

fn functional(op: &'static OpDef, args: &[Value]) -> Formed {
    op.host.is_none().then(|| call(op, args))
}

fn inplace(op: &'static OpDef, args: &[Value]) -> Formed {
    op.forms.inplace?;
    let [Value::Tensor(target), rest @ ..] = args else { return None };
    let changed = || {
        let mut args = vec![Value::Tensor(opsmith::to_copy(target)?)];
        args.extend_from_slice(rest);
        front::invoke_inplace(op, &args.iter().map(Value::as_arg).collect::<Vec<Arg<'_>>>())?;
        Ok(tensors(&args[..1]))
    };
    Some(changed())
}

fn out(op: &'static OpDef, args: &[Value]) -> Formed {
    op.forms.out?;
    let written = || {
        let mut outs = call(op, args)?;
        outs.truncate(outs.len() - op.hidden);
        let mut outs = outs.iter().map(opsmith::to_copy).collect::<Result<Vec<Tensor>>>()?;
        let args: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
        front::invoke_out(op, &args, &mut outs.iter_mut().collect::<Vec<_>>())?;
        Ok(outs)
    };
    Some(written())
}

/// The arguments with their tensors on a device. A device argument that is given, and any without tensors, determines the
/// results' device.
fn there(op: &OpDef, args: &[Value], device: Device) -> Result<Vec<Value>> {
    let own = tensors(args);
    let mut args = with_tensors(args, &all_on(&own, device)?);
    for (value, def) in args.iter_mut().zip(op.schema.args) {
        if def.ty.kind == ArgKind::Device && (own.is_empty() || matches!(value, Value::Device(_))) {
            *value = Value::Device(device);
        }
    }
    Ok(args)
}

fn all_on(tensors: &[Tensor], device: Device) -> Result<Vec<Tensor>> {
    tensors.iter().map(|tensor| tensor.to_device(device)).collect()
}

/// Leaves with the same elements; tensors that cannot have a gradient are unchanged.
fn leaves(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
    let leaf = |tensor: &Tensor| match tensor.dtype().is_differentiable() {
        true => tensor.detach().requires_grad_(true),
        false => Ok(tensor.clone()),
    };
    tensors.iter().map(leaf).collect()
}

/// A result that is not on the device.
fn misplaced(found: &[Tensor], device: Device) -> Option<String> {
    let place = found.iter().position(|found| found.device() != device)?;
    Some(format!("result {place} is on {}", found[place].device()))
}
