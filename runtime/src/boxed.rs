//! Calls by name with boxed arguments: the interface of Python, graphs and the parity runner.
//!
//! In: a name, positional and keyword values. Out: boxed results. Arguments are matched with the signature and
//! converted where that is unambiguous (an integer for a float, one integer for a list of fixed length); then the call
//! goes through the same dispatcher as typed calls.

mod overload;
mod samples;

pub(crate) use overload::choose_linked;

use std::panic::Location;

use smallvec::SmallVec;

use crate::arg::{Arg, MemoryFormat, Value};
use crate::call;
use crate::constraint::Constraint;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::library::{Form, Library};
use crate::lists::{self, OwnedLists};
use crate::op::{ArgDef, ArgKind, ArgType, DefaultValue, OpDef, Outputs};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::trace_hook;

/// An argument given by name.
type Keyword<'a> = &'a (&'a str, Value);

/// Calls an operator of a library or its parents by name. A name without overload selects the overload that takes the
/// arguments with the fewest conversions. `out` as a keyword calls the out form; a tensor without elements given as
/// `out` gets the shape of the result, visible through every handle.
///
/// # Errors
/// If there is no such operator, the arguments do not fit, or the operator itself fails.
#[track_caller]
pub fn call(
    library: &'static Library,
    name: &str,
    args: &[Value],
    kwargs: &[(&str, Value)],
) -> Result<Vec<Value>> {
    let _site = trace_hook::enter(Location::caller());
    let (op, form) = overload::choose(library, name, args, kwargs)?;
    of_form(op, form, args, kwargs)
}

/// Calls a form of an operator, given its definition, of whichever library.
///
/// # Errors
/// If the arguments do not fit, or the operator itself fails.
#[track_caller]
pub fn call_form(
    op: &'static OpDef,
    form: Form,
    args: &[Value],
    kwargs: &[(&str, Value)],
) -> Result<Vec<Value>> {
    let _site = trace_hook::enter(Location::caller());
    of_form(op, form, args, kwargs)
}

fn of_form(op: &'static OpDef, form: Form, args: &[Value], kwargs: &[(&str, Value)]) -> Result<Vec<Value>> {
    let (outs, kwargs): (Vec<Keyword<'_>>, Vec<Keyword<'_>>) =
        kwargs.iter().partition(|(key, _)| is_out_name(op, key));
    let bound =
        bind(op, args, &kwargs).map_err(|error| error.in_op(op.name, Vec::new()).with_signature(op))?;
    let args: SmallVec<[Arg<'_>; 8]> = bound.iter().map(Bound::as_arg).collect();
    match (form, outs.is_empty()) {
        (Form::Functional, true) => functional(op, &args),
        (Form::Inplace, true) if !op.inplace_pairs.is_empty() => pairs(op, &args),
        (Form::Inplace, true) => {
            call::invoke_inplace(op, &args)?;
            Ok(vec![args[0].to_value()])
        }
        (Form::Out, true) => Err(Error::argument("the tensors to write into are not given")
            .in_op(op.name, Vec::new())
            .with_help("give them as `out`")),
        (Form::Functional | Form::Out, false) => with_outs(op, &args, &outs),
        (Form::Inplace, false) => {
            Err(Error::argument("an in-place form takes no `out`").in_op(op.name, Vec::new()))
        }
    }
}

/// Calls the functional form of an operator, given its definition.
///
/// # Errors
/// If the arguments do not fit, or the operator itself fails.
#[track_caller]
pub fn call_definition(op: &'static OpDef, args: &[Value], kwargs: &[(&str, Value)]) -> Result<Vec<Value>> {
    let _site = trace_hook::enter(Location::caller());
    with_bound(op, args, kwargs, |args| functional(op, args))
}

/// Reads arguments as a call of the functional form does, and passes them to a function in signature order.
///
/// # Errors
/// If the arguments do not fit, and errors of the function.
pub(crate) fn with_bound<R>(
    op: &'static OpDef,
    args: &[Value],
    kwargs: &[(&str, Value)],
    function: impl FnOnce(&[Arg<'_>]) -> Result<R>,
) -> Result<R> {
    let kwargs: Vec<Keyword<'_>> = kwargs.iter().collect();
    let bound =
        bind(op, args, &kwargs).map_err(|error| error.in_op(op.name, Vec::new()).with_signature(op))?;
    let args: SmallVec<[Arg<'_>; 8]> = bound.iter().map(Bound::as_arg).collect();
    function(&args)
}

/// Calls an operator with checked arguments in signature order.
///
/// # Errors
/// Errors of the operator.
pub fn functional(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Vec<Value>> {
    if op.host.is_some() {
        return call::invoke_host(op, args);
    }
    let outs = call::invoke(op, args)?;
    Ok(results(op, outs, op.present_results(args)?))
}

/// The results of an in-place form: those written into no argument, as the typed function returns them, or the
/// arguments if there are no such results.
fn pairs(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Vec<Value>> {
    let others = call::invoke_pairs(op, args)?;
    if !others.is_empty() {
        return Ok(others.into_iter().map(Value::Tensor).collect());
    }
    let mut written: Vec<_> = op.inplace_pairs.iter().collect();
    written.sort_by_key(|(_, output)| *output);
    Ok(written.iter().map(|(argument, _)| args[*argument as usize].to_value()).collect())
}

fn results(op: &OpDef, outs: Outputs, present: u64) -> Vec<Value> {
    match op.schema.returns {
        [only] if only.ty.kind == ArgKind::Tensors => vec![Value::Tensors(outs.into_vec())],
        results => {
            let visible = outs.into_iter().take(results.len() - op.hidden).enumerate();
            let value = |(index, out): (usize, Tensor)| {
                if present & (1 << index) != 0 { Value::Tensor(out) } else { Value::None }
            };
            visible.map(value).collect()
        }
    }
}

fn is_out_name(op: &OpDef, key: &str) -> bool {
    if op.argument(key).is_some() {
        return false;
    }
    let numbered =
        key.strip_prefix("out").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    numbered || op.schema.returns.iter().any(|result| result.name == Some(key))
}

/// The output that a keyword denotes, by its name or number.
fn out_position(op: &OpDef, key: &str) -> usize {
    let named = op.schema.returns.iter().position(|result| result.name == Some(key));
    named.or_else(|| key.strip_prefix("out")?.parse().ok()).unwrap_or(0)
}

fn with_outs(op: &'static OpDef, args: &[Arg<'_>], given: &[&(&str, Value)]) -> Result<Vec<Value>> {
    let mut given: SmallVec<[(usize, Keyword<'_>); 4]> =
        given.iter().map(|&keyword| (out_position(op, keyword.0), keyword)).collect();
    given.sort_by_key(|(position, _)| *position);
    if let Some([(_, (first, _)), (_, (second, _))]) = given.array_windows().find(|[a, b]| a.0 == b.0) {
        return Err(Error::argument(format!("`{first}` and `{second}` are the same output, given twice"))
            .in_op(op.name, Vec::new()));
    }
    let mut tensors: Vec<Tensor> = Vec::new();
    for (_, (_, value)) in given {
        match value {
            Value::Tensor(tensor) => tensors.push(tensor.clone()),
            Value::Tensors(list) => tensors.extend(list.iter().cloned()),
            other => {
                return Err(Error::argument(format!(
                    "`out` must be a tensor, got {}",
                    other.as_arg().kind()
                ))
                .in_op(op.name, Vec::new()));
            }
        }
    }
    if op.forms.out.is_none() {
        return Err(Error::argument("the operator has no out form").in_op(op.name, Vec::new()));
    }
    let given = tensors.clone();
    let mut outs: Vec<&mut Tensor> = tensors.iter_mut().collect();
    call::invoke_out(op, args, &mut outs)?;
    // The caller's tensor takes over the new memory and layout, because the values that hold the tensor are only
    // borrowed.
    for (given, made) in given.iter().zip(&tensors).filter(|(given, made)| !given.same(made)) {
        if !given.become_like(made, dispatch::observer::is_stale(given.storage())) {
            return Err(Error::aliasing("another thread gave the tensor of `out` elements meanwhile")
                .in_op(op.name, Vec::new())
                .with_help("let one thread write a tensor at a time"));
        }
    }
    Ok(given.into_iter().map(Value::Tensor).collect())
}

/// An argument at its position: the caller's, a converted one, or the default.
enum Bound<'a> {
    Given(&'a Value),
    Converted(Value),
    /// A number read from a tensor without dimensions.
    FromTensor(Value),
    Default(Arg<'static>),
}

impl Bound<'_> {
    fn as_arg(&self) -> Arg<'_> {
        match self {
            Bound::Given(value) => value.as_arg(),
            Bound::Converted(value) | Bound::FromTensor(value) => value.as_arg(),
            Bound::Default(arg) => *arg,
        }
    }
}

fn bind<'a>(op: &OpDef, args: &'a [Value], kwargs: &[&'a (&str, Value)]) -> Result<Vec<Bound<'a>>> {
    let defs = op.schema.args;
    let positional = defs.iter().filter(|def| !def.keyword_only).count();
    if args.len() > positional {
        return Err(Error::argument(format!(
            "{} positional arguments given, at most {positional} taken",
            args.len()
        )));
    }
    let mut named: SmallVec<[(usize, &str); 8]> = SmallVec::new();
    for (key, _) in kwargs {
        let Some(position) = op.argument(key) else {
            let names: Vec<&str> = defs.iter().map(|def| def.name).collect();
            return Err(Error::argument(format!("there is no argument `{key}`"))
                .with_help(format!("the arguments are: {}", names.join(", "))));
        };
        if position < args.len() {
            return Err(Error::argument(format!("`{key}` is given twice, by position and by name")));
        }
        if let Some((_, other)) = named.iter().find(|(known, _)| *known == position) {
            return Err(Error::argument(format!("`{other}` and `{key}` are the same argument, given twice")));
        }
        named.push((position, key));
    }
    defs.iter()
        .enumerate()
        .map(|(position, def)| {
            let named = || kwargs.iter().find(|(key, _)| op.argument(key) == Some(position));
            let given = args.get(position).or_else(|| named().map(|(_, value)| value));
            match (given, def.default) {
                (Some(value), _) => convert(def, value),
                (None, Some(default)) => Ok(Bound::Default(default.as_arg(def.ty))),
                (None, None) => Err(Error::argument(format!("the argument `{}` is missing", def.name))),
            }
        })
        .collect()
}

fn convert<'a>(def: &ArgDef, value: &'a Value) -> Result<Bound<'a>> {
    let converted = match (def.ty.kind, value) {
        (_, Value::None) if def.ty.optional => return Ok(Bound::Given(value)),
        (ArgKind::Lists(kind), Value::Lists(lists)) if lists.borrow().kind() == kind => {
            return Ok(Bound::Given(value));
        }
        (kind, value) if !matches!(kind, ArgKind::Lists(_)) && value.is_variant(kind) => {
            return Ok(Bound::Given(value));
        }
        (ArgKind::Float, Value::Int(value)) => Some(Value::Float(*value as f64)),
        (ArgKind::Float, Value::Scalar(value)) if !matches!(value, Scalar::Complex(_)) => {
            Some(Value::Float(value.to_f64()))
        }
        (ArgKind::Int, Value::Str(name)) => named(def, name)?,
        (ArgKind::Int, Value::Bool(value)) => Some(Value::Int(i64::from(*value))),
        (ArgKind::Int, Value::Scalar(Scalar::Int(value))) => Some(Value::Int(*value)),
        (ArgKind::Bool, Value::Scalar(Scalar::Bool(value))) => Some(Value::Bool(*value)),
        (ArgKind::Scalar, Value::Bool(value)) => Some(Value::Scalar(Scalar::Bool(*value))),
        (ArgKind::Scalar, Value::Int(value)) => Some(Value::Scalar(Scalar::Int(*value))),
        (ArgKind::Scalar, Value::Float(value)) => Some(Value::Scalar(Scalar::Float(*value))),
        // A tensor without dimensions converts to a number.
        (ArgKind::Scalar, Value::Tensor(tensor)) if tensor.dim() == 0 => {
            return Ok(Bound::FromTensor(Value::Scalar(tensor.item()?)));
        }
        // A number converts to a tensor without dimensions.
        (ArgKind::Tensor, Value::Scalar(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
            number(value).map(|scalar| Value::Tensor(Tensor::scalar(scalar, scalar.dtype())))
        }
        (ArgKind::Ints(Some(length)), Value::Int(value)) => Some(Value::Ints(vec![*value; length as usize])),
        (ArgKind::Bools(Some(length)), Value::Bool(value)) => {
            Some(Value::Bools(vec![*value; length as usize]))
        }
        (ArgKind::OptionalTensors, Value::Tensors(list)) => {
            Some(Value::OptionalTensors(list.iter().cloned().map(Some).collect()))
        }
        (ArgKind::Tensors, Value::OptionalTensors(list)) => {
            list.iter().cloned().collect::<Option<Vec<_>>>().map(Value::Tensors)
        }
        (ArgKind::MemoryFormat, Value::Str(name)) => MemoryFormat::from_name(name).map(Value::MemoryFormat),
        (ArgKind::DType, Value::Str(name)) => crate::DType::from_name(name).map(Value::DType),
        (ArgKind::Device, Value::Str(name)) => crate::Device::from_name(name).map(Value::Device),
        (kind, value) => convert_list(kind, value),
    };
    converted.map(Bound::Converted).ok_or_else(|| {
        Error::argument(format!("`{}` must be {}, got {}", def.name, def.ty, value.as_arg().kind()))
    })
}

/// A list of values as one of another kind, if that conversion is unambiguous.
fn convert_list(kind: ArgKind, value: &Value) -> Option<Value> {
    match (kind, value) {
        (ArgKind::Floats, Value::Ints(list)) => {
            Some(Value::Floats(list.iter().map(|value| *value as f64).collect()))
        }
        (ArgKind::Scalars, Value::Ints(list)) => {
            Some(Value::Scalars(list.iter().map(|value| Scalar::Int(*value)).collect()))
        }
        (ArgKind::Scalars, Value::Floats(list)) => {
            Some(Value::Scalars(list.iter().map(|value| Scalar::Float(*value)).collect()))
        }
        (ArgKind::Scalars, Value::Bools(list)) => {
            Some(Value::Scalars(list.iter().map(|value| Scalar::Bool(*value)).collect()))
        }
        (ArgKind::DTypes, Value::Strs(list)) => {
            list.iter().map(|name| crate::DType::from_name(name)).collect::<Option<_>>().map(Value::DTypes)
        }
        (ArgKind::Lists(kind), Value::Lists(lists)) => {
            lists::convert(lists.borrow(), kind).map(|lists| Value::Lists(Box::new(lists)))
        }
        // An empty list converts to any kind.
        (kind, Value::Ints(list)) if list.is_empty() => Some(match kind {
            ArgKind::Tensors => Value::Tensors(Vec::new()),
            ArgKind::OptionalTensors => Value::OptionalTensors(Vec::new()),
            ArgKind::Bools(_) => Value::Bools(Vec::new()),
            ArgKind::Strs => Value::Strs(Vec::new()),
            ArgKind::DTypes => Value::DTypes(Vec::new()),
            ArgKind::Lists(kind) => Value::Lists(Box::new(OwnedLists::empty(kind))),
            _ => return None,
        }),
        _ => None,
    }
}

/// The integer that a name denotes; `None` if the argument's values have no names.
fn named(def: &ArgDef, name: &str) -> Result<Option<Value>> {
    let Some(names) = def.constraints.iter().find(|known| matches!(known, Constraint::Named(_))) else {
        return Ok(None);
    };
    match names.named(name) {
        Some(value) => Ok(Some(Value::Int(value))),
        None => Err(Error::value(format!("`{}` must be {names}, got {name:?}", def.name))),
    }
}

fn number(value: &Value) -> Option<Scalar> {
    match value {
        Value::Scalar(value) => Some(*value),
        Value::Int(value) => Some(Scalar::Int(*value)),
        Value::Float(value) => Some(Scalar::Float(*value)),
        Value::Bool(value) => Some(Scalar::Bool(*value)),
        _ => None,
    }
}

impl DefaultValue {
    /// The default as an argument of the given type.
    pub fn as_arg(self, ty: ArgType) -> Arg<'static> {
        match (self, ty.kind) {
            (DefaultValue::Bool(value), ArgKind::Scalar) => Arg::Scalar(Scalar::Bool(value)),
            (DefaultValue::Int(value), ArgKind::Scalar) => Arg::Scalar(Scalar::Int(value)),
            (DefaultValue::Float(value), ArgKind::Scalar) => Arg::Scalar(Scalar::Float(value)),
            (DefaultValue::None, _) => Arg::None,
            (DefaultValue::Bool(value), _) => Arg::Bool(value),
            (DefaultValue::Int(value), _) => Arg::Int(value),
            (DefaultValue::Float(value), _) => Arg::Float(value),
            (DefaultValue::Str(value), _) => Arg::Str(value),
            (DefaultValue::Ints(value), _) => Arg::Ints(value),
            (DefaultValue::Floats(value), _) => Arg::Floats(value),
            (DefaultValue::Bools(value), _) => Arg::Bools(value),
            (DefaultValue::Scalars(value), _) => Arg::Scalars(value),
            (DefaultValue::Strs(value), _) => Arg::Strs(value),
            (DefaultValue::DTypes(value), _) => Arg::DTypes(value),
            (DefaultValue::Lists(value), _) => Arg::Lists(value),
            (DefaultValue::DType(value), _) => Arg::DType(value),
            (DefaultValue::MemoryFormat(value), _) => Arg::MemoryFormat(value),
        }
    }
}

impl Error {
    /// Adds the signature as help, unless the error has help.
    fn with_signature(self, op: &OpDef) -> Error {
        if self.help().is_some() {
            self
        } else {
            self.with_help(format!("the signature is {}", op.schema.text))
        }
    }
}
