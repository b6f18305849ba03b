//! Inference of results, whose sizes may be symbols of the caller.
//!
//! In: an operator, dtypes and sizes of its arguments. Out: dtypes of results, and their sizes as nodes over the symbols, with the
//! conditions that a call needs.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};

use opsmith_core::abi::{self, NodeKind, ValueKind};
use opsmith_graph::infer_composition;
use opsmith_runtime::error::Error;
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Condition, Context, Derivation, Inference, Meta, Origin, OutputsMeta, Shape, Size, Symbol,
    SymbolInfo, infer as infer_call,
};
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::{Tensor, Value};

use crate::arguments::{self, Given, list, with_bound};
use crate::device::CallStream;
use crate::failure::{Failure, Outcome, guarded, mistake};
use crate::operators::definition;
use crate::structures::{self, InferredCall, InferredResult, Node, Operator, SizeGuard};

/// `infer` of the header.
pub unsafe extern "C" fn infer(
    op: *const Operator,
    values: *const structures::Value,
    count: i64,
    examples: *const i64,
    symbol_count: i64,
    found: *mut *const InferredCall,
) -> c_int {
    guarded(|| {
        if found.is_null() {
            return mistake("`found` is null");
        }
        // SAFETY: the pointers are those of the header.
        unsafe {
            *found = std::ptr::null();
            let op = definition(op)?;
            let mut context = Context::new();
            for (number, example) in list(examples, symbol_count, "examples")?.iter().enumerate() {
                let example = (*example >= 0).then_some(*example);
                let name = format!("s{number}");
                context.symbols.add(SymbolInfo { example, ..SymbolInfo::new(name, Origin::Input) });
            }
            let given = symbol_count.max(0) as usize;
            let (values, described) = read_all(op, values, count, given)?;
            let outputs = outputs(op, &values, &described, &mut context)?;
            *found = Box::into_raw(Box::new(Written::of(op, &context, given, &outputs)?)).cast();
        }
        Ok(())
    })
}

/// `release_inference` of the header.
pub unsafe extern "C" fn release(found: *const InferredCall) {
    if !found.is_null() {
        // SAFETY: the pointer is one of `infer`, whose structure starts with the public one.
        drop(unsafe { Box::from_raw(found.cast_mut().cast::<Written>()) });
    }
}

/// The descriptions of an argument's tensors; `Plain` for other arguments.
enum Described {
    Plain,
    Tensor(Meta),
    Tensors(Vec<Meta>),
    OptionalTensors(Vec<Option<Meta>>),
}

/// Reads arguments, with a placeholder for each tensor.
///
/// # Safety
/// The values are those of the header, and valid during the call.
unsafe fn read_all(
    op: &OpDef,
    values: *const structures::Value,
    count: i64,
    symbols: usize,
) -> Outcome<(Given, Vec<Described>)> {
    // SAFETY: the caller's promise.
    let given = unsafe { arguments::values(op, values, count)? };
    let (mut read, mut described) = (Given::new(), Vec::new());
    for (def, value) in op.schema.args.iter().zip(given) {
        let placeholder = || Tensor::from_slice::<f32>(&[0.0], &[]).map_err(Failure::Operator);
        // SAFETY: the caller's promise.
        let meta = |tensor: &*const structures::Tensor| unsafe { meta(*tensor, def.name, symbols) };
        // SAFETY: the fields of the unions are those of the kinds, and the caller's promise.
        let (value, description) = match ValueKind::from_number(value.kind) {
            Some(ValueKind::Tensor) => {
                // SAFETY: as above.
                let meta = meta(unsafe { &value.payload.tensor })?;
                (Some(Value::Tensor(placeholder()?)), Described::Tensor(meta))
            }
            Some(ValueKind::Tensors) => {
                // SAFETY: as above.
                let items = unsafe { list(value.payload.tensors, value.count, def.name)? };
                if def.ty.kind == ArgKind::OptionalTensors {
                    let one =
                        |item: &*const structures::Tensor| (!item.is_null()).then(|| meta(item)).transpose();
                    let metas = items.iter().map(one).collect::<Outcome<Vec<_>>>()?;
                    let value = metas.iter().map(|meta| meta.as_ref().map(|_| placeholder()).transpose());
                    let value = Value::OptionalTensors(value.collect::<Outcome<_>>()?);
                    (Some(value), Described::OptionalTensors(metas))
                } else {
                    let metas = items.iter().map(meta).collect::<Outcome<Vec<_>>>()?;
                    let value = metas.iter().map(|_| placeholder()).collect::<Outcome<_>>()?;
                    (Some(Value::Tensors(value)), Described::Tensors(metas))
                }
            }
            // SAFETY: as above.
            _ => (unsafe { arguments::read(def, value, CallStream::HOST)? }, Described::Plain),
        };
        read.push(value);
        described.push(description);
    }
    Ok((read, described))
}

/// The description of a tensor, with its symbols.
///
/// # Safety
/// As [`arguments::describe`].
unsafe fn meta(tensor: *const structures::Tensor, name: &str, symbols: usize) -> Outcome<Meta> {
    // SAFETY: the caller's promise.
    let given = unsafe { arguments::describe(tensor, name)? };
    let size = |size: &i64| match usize::try_from(-1 - *size) {
        Err(_) => Ok(Size::Const(*size)),
        Ok(number) if number < symbols => Ok(Size::from(Symbol(number as u32))),
        Ok(number) => mistake(format!("`{name}` has the symbol {number}, and there are {symbols} symbols")),
    };
    let sizes = given.sizes.iter().map(size).collect::<Outcome<_>>()?;
    Ok(Meta::new(given.dtype, Shape::Known(sizes)))
}

fn outputs(
    op: &'static OpDef,
    values: &Given,
    described: &[Described],
    context: &mut Context,
) -> Outcome<OutputsMeta> {
    let found = with_bound(op, values, |bound| {
        let one = |(arg, described)| match described {
            &Described::Plain => ArgumentMeta::Plain(arg),
            Described::Tensor(meta) => ArgumentMeta::Tensor(meta),
            Described::Tensors(metas) => ArgumentMeta::Tensors(metas),
            Described::OptionalTensors(metas) => ArgumentMeta::OptionalTensors(metas),
        };
        let args: Vec<ArgumentMeta<'_>> = bound.iter().copied().zip(described).map(one).collect();
        match infer_call(op, &args, context)? {
            Inference::Tensors(outputs) => Ok(outputs),
            Inference::Composition => infer_composition(op, &args, context),
            Inference::Values => Err(Error::not_implemented("it returns values, which exist in a run only")),
        }
    });
    Ok(found?)
}

/// The results of inference, and the memory that their structure leads to.
#[repr(C)]
struct Written {
    public: InferredCall,
    nodes: Vec<Node>,
    results: Vec<InferredResult>,
    sizes: Vec<Vec<i64>>,
    guards: Vec<SizeGuard>,
    texts: Vec<CString>,
}

impl Written {
    fn of(op: &OpDef, context: &Context, given: usize, outputs: &OutputsMeta) -> Outcome<Written> {
        let mut writer = Writer { context, given, nodes: Vec::new(), known: HashMap::new() };
        let is_list = matches!(op.schema.returns, [only] if only.ty.kind == ArgKind::Tensors);
        let visible = if is_list { outputs.outs.len() } else { op.schema.returns.len() - op.hidden };
        let (mut results, mut sizes, mut guards, mut texts) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for out in outputs.outs.iter().take(visible) {
            let Some(shape) = out.shape.sizes() else {
                return Err(Error::graph("the number of dimensions of a result is not known before the run")
                    .in_op(op.name, Vec::new())
                    .into());
            };
            let nodes = shape.iter().map(|size| writer.size(size)).collect::<Outcome<Vec<i64>>>()?;
            let (code, bits) = abi::element(out.dtype);
            let (ndim, at) = (nodes.len() as i32, nodes.as_ptr());
            results.push(InferredResult { code, bits, reserved: [0; 2], ndim, sizes: at });
            sizes.push(nodes);
        }
        for guard in context.guards() {
            let Some(node) = writer.condition(&guard.condition)? else { continue };
            let named = guard.condition.named(&context.symbols);
            let text = format!("{named}, because {}", guard.reason).replace('\0', " ");
            let text = CString::new(text).unwrap_or_default();
            guards.push(SizeGuard { node, text: text.as_ptr().cast::<c_char>() });
            texts.push(text);
        }
        let nodes = writer.nodes;
        let public = InferredCall {
            size: size_of::<InferredCall>(),
            node_count: nodes.len() as i64,
            nodes: nodes.as_ptr(),
            result_count: results.len() as i64,
            results: results.as_ptr(),
            guard_count: guards.len() as i64,
            guards: guards.as_ptr(),
        };
        Ok(Written { public, nodes, results, sizes, guards, texts })
    }
}

/// Whether a part of a condition is decided by nothing that nodes can say.
fn is_open(condition: &Condition) -> bool {
    match condition {
        Condition::True | Condition::Unknown | Condition::Confirmed(_) => true,
        Condition::False | Condition::Equal(..) | Condition::Less(..) => false,
        Condition::Not(inner) => is_open(inner),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().any(is_open),
    }
}

/// Sizes and conditions as nodes, each once.
struct Writer<'a> {
    context: &'a Context,
    given: usize,
    nodes: Vec<Node>,
    known: HashMap<(i32, i64, i64), i64>,
}

impl Writer<'_> {
    fn node(&mut self, kind: NodeKind, a: i64, b: i64) -> i64 {
        let next = self.nodes.len() as i64;
        let place = *self.known.entry((kind as i32, a, b)).or_insert(next);
        if place == next {
            self.nodes.push(Node { kind: kind as i32, reserved: 0, a, b });
        }
        place
    }

    fn size(&mut self, size: &Size) -> Outcome<i64> {
        let formula = match size {
            Size::Const(value) => return Ok(self.node(NodeKind::Number, *value, 0)),
            Size::Unknown => {
                return Err(Error::graph("a size of a result is not known before the run").into());
            }
            Size::Formula(formula) => formula,
        };
        let mut sum: Option<i64> = None;
        for term in formula.terms() {
            let mut product: Option<i64> = None;
            if term.coefficient != 1 || term.powers.is_empty() {
                product = Some(self.node(NodeKind::Number, term.coefficient, 0));
            }
            for (symbol, power) in &term.powers {
                let factor = self.symbol(*symbol)?;
                for _ in 0..*power {
                    product = Some(match product {
                        Some(product) => self.node(NodeKind::Multiply, product, factor),
                        None => factor,
                    });
                }
            }
            sum = match (sum, product) {
                (Some(sum), Some(product)) => Some(self.node(NodeKind::Add, sum, product)),
                (sum, product) => sum.or(product),
            };
        }
        Ok(sum.unwrap_or_else(|| self.node(NodeKind::Number, 0, 0)))
    }

    fn symbol(&mut self, symbol: Symbol) -> Outcome<i64> {
        if (symbol.0 as usize) < self.given {
            return Ok(self.node(NodeKind::Symbol, symbol.0.into(), 0));
        }
        if let Origin::Derived(derivation) = self.context.symbols.origin(symbol) {
            let [a, b] = derivation.sizes();
            let (a, b) = (self.size(a)?, self.size(b)?);
            let kind = match derivation {
                Derivation::Quotient(..) => NodeKind::Quotient,
                Derivation::Remainder(..) => NodeKind::Remainder,
                Derivation::Greater(..) => NodeKind::Maximum,
                Derivation::Smaller(..) => NodeKind::Minimum,
            };
            return Ok(self.node(kind, a, b));
        }
        let key = (-1, symbol.0.into(), 0);
        if let Some(place) = self.known.get(&key) {
            return Ok(*place);
        }
        let info = self.context.symbols.info(symbol);
        let (least, most) = info.map_or((0, None), |info| (info.least, info.most.known()));
        let place = self.nodes.len() as i64;
        // Each such size is a node of its own, even if its bounds are those of another.
        let most = most.unwrap_or(-1);
        self.nodes.push(Node { kind: NodeKind::Fresh as i32, reserved: 0, a: least, b: most });
        self.known.insert(key, place);
        Ok(place)
    }

    /// The node of a condition; `None` if nothing has to be checked before the run.
    fn condition(&mut self, condition: &Condition) -> Outcome<Option<i64>> {
        Ok(match condition {
            Condition::True | Condition::Unknown | Condition::Confirmed(_) => None,
            Condition::False => {
                let (zero, one) = (self.node(NodeKind::Number, 0, 0), self.node(NodeKind::Number, 1, 0));
                Some(self.node(NodeKind::Equal, zero, one))
            }
            Condition::Equal(a, b) => {
                let (a, b) = (self.size(a)?, self.size(b)?);
                Some(self.node(NodeKind::Equal, a, b))
            }
            Condition::Less(a, b) => {
                let (a, b) = (self.size(a)?, self.size(b)?);
                Some(self.node(NodeKind::Less, a, b))
            }
            // One part that cannot be checked leaves all open.
            Condition::Not(_) | Condition::Any(_) if is_open(condition) => None,
            Condition::Not(inner) => self.condition(inner)?.map(|inner| self.node(NodeKind::Not, inner, 0)),
            Condition::Any(parts) => self.joined(parts, NodeKind::Or)?,
            Condition::All(parts) => self.joined(parts, NodeKind::And)?,
        })
    }

    fn joined(&mut self, parts: &[Condition], kind: NodeKind) -> Outcome<Option<i64>> {
        let mut all: Option<i64> = None;
        for part in parts {
            let part = self.condition(part)?;
            all = match (all, part) {
                (Some(all), Some(part)) => Some(self.node(kind, all, part)),
                (all, part) => all.or(part),
            };
        }
        Ok(all)
    }
}
