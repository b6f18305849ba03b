//! Operators that are declared while the program runs: found by name as all others, and unloaded again.
//!
//! In: a kernel, its operands and its gradient. Out: a definition as the dispatcher knows them. The dispatcher
//! and recorded calls refer to definitions for the life of the program, so a definition stays when its
//! operator is unloaded, a few hundred bytes without a kernel, and serves again when one of the same name
//! and signature is declared.

use std::any::Any;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use opsmith_core::{Backend, DType, cpp};
use opsmith_runtime::arg::Arg;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::{Taken, register, withdraw};
use opsmith_runtime::layout::Dims;
use opsmith_runtime::library::Library;
use opsmith_runtime::op::{
    ArgDef, ArgKind, ArgType, CustomOp, DefaultValue, ElementType, Inferred, KernelCall, KernelFn,
    KernelTable, Kernels, OpDef, ReturnDef, Schema,
};
use opsmith_runtime::op::{Forward, GradDef, GradientFormula};

use super::file::KernelFile;
use super::gradient::{self, Bprop};
use super::kernel::Kernel;
use super::open;
use super::signature::{InputKind, Signature};

/// The kernel and the gradient of an operator that was declared at run time.
pub(super) struct Declared {
    active: RwLock<Option<Arc<Active>>>,
}

/// An operator that is there.
pub(super) struct Active {
    pub kernel: Kernel,
    pub bprop: Option<Bprop>,
}

impl Declared {
    /// The declaration behind a definition, if it was declared at run time.
    #[inline]
    pub(super) fn of(op: &OpDef) -> Option<&'static Declared> {
        let custom: &dyn Any = op.custom?;
        custom.downcast_ref()
    }

    /// The operator, until it is unloaded.
    ///
    /// # Errors
    /// If it was.
    #[inline]
    pub(super) fn active(&self) -> Result<Arc<Active>> {
        self.active.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(unloaded)
    }
}

impl CustomOp for Declared {
    fn infer(&self, op: &OpDef, args: &[Arg<'_>]) -> Result<Inferred> {
        self.active()?.kernel.infer(op.schema.args, args)
    }

    fn infer_open(&self, op: &OpDef, args: &[Arg<'_>], sizes: Vec<Dims>) -> Result<Vec<(Dims, DType)>> {
        open::infer(&self.active()?.kernel, op, args, sizes)
    }
}

#[cold]
fn unloaded() -> Error {
    Error::not_found("the operator was unloaded").with_help("declare it again")
}

/// The entry of every table.
fn run(call: &KernelCall<'_>) -> Result<()> {
    match Declared::of(call.op()) {
        Some(declared) => declared.active()?.kernel.run(call),
        None => Err(unloaded()),
    }
}

static UNUSED: LazyLock<Mutex<HashMap<String, Vec<&'static OpDef>>>> = LazyLock::new(Mutex::default);

/// Makes an operator known.
///
/// # Errors
/// If there is one of that name already, and this one is to be found by name.
pub(super) fn declare(active: Active, doc: &str, listed: bool) -> Result<&'static OpDef> {
    let name = active.kernel.signature.name.clone();
    let make = || {
        let text = schema_text(&active.kernel.signature);
        let key = format!("{text}\n{}\n{doc}", active.bprop.is_some());
        let unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&key).and_then(Vec::pop);
        let op = unused.unwrap_or_else(|| define(&active, &text, doc));
        if let Some(declared) = Declared::of(op) {
            *declared.active.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(active));
        }
        op
    };
    match listed {
        true => register(&name, make).map_err(|taken| refused(&name, &taken)),
        false => Ok(make()),
    }
}

#[cold]
fn refused(name: &str, taken: &Taken) -> Error {
    match taken {
        Taken::Declared => Error::argument(format!("the operator `{name}` is already declared")).with_help(
            "choose another name, unload the other first, or declare this one with `unlisted()`, so that it has no name for calls by name",
        ),
        Taken::Generated(library) => {
            Error::argument(format!("`{name}` is an operator of the library `{}`", library.name))
                .with_help("choose another name")
        }
    }
}

/// Takes the operator away. Calls that run finish; then its library is closed.
pub(super) fn unload(op: &'static OpDef) {
    withdraw(op);
    let Some(declared) = Declared::of(op) else { return };
    let active = declared.active.write().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(active) = active {
        let key = format!("{}\n{}\n{}", op.schema.text, active.bprop.is_some(), op.doc);
        UNUSED.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().push(op);
    }
}

/// The signature in the language of specs.
fn schema_text(signature: &Signature) -> String {
    let mut args: Vec<String> = Vec::new();
    for input in &signature.inputs {
        let ty = match input.kind {
            InputKind::Required => "Tensor",
            InputKind::Optional => "Tensor?",
            InputKind::Dynamic => "Tensor[]",
        };
        args.push(format!("{ty} {}", input.name));
    }
    for attribute in signature.attributes.iter().filter(|attribute| attribute.value.is_none()) {
        let (ty, _) = attribute.ty.schema();
        let default = attribute.default.as_ref().map_or(String::new(), |default| format!("={default}"));
        args.push(format!("{ty} {}{default}", attribute.name));
    }
    let outputs: Vec<String> = signature
        .outputs
        .iter()
        .map(|output| format!("{} {output}", if signature.dynamic_output { "Tensor[]" } else { "Tensor" }))
        .collect();
    let result = match outputs.as_slice() {
        [only] => only.clone(),
        several => format!("({})", several.join(", ")),
    };
    format!("{}({}) -> {result}", signature.name, args.join(", "))
}

/// A definition, for the life of the program.
fn define(active: &Active, text: &str, doc: &str) -> &'static OpDef {
    let signature = &active.kernel.signature;
    let leak = |text: &str| -> &'static str { text.to_owned().leak() };
    let mut args = Vec::new();
    for input in &signature.inputs {
        let kind = if input.kind == InputKind::Dynamic { ArgKind::Tensors } else { ArgKind::Tensor };
        let ty = ArgType { kind, optional: input.kind == InputKind::Optional };
        let default = ty.optional.then_some(DefaultValue::None);
        args.push(argument(leak(&input.name), ty, default));
    }
    for attribute in signature.attributes.iter().filter(|attribute| attribute.value.is_none()) {
        let (_, kind) = attribute.ty.schema();
        let default = attribute.default.as_ref().map(|default| default.to_default());
        args.push(argument(leak(&attribute.name), ArgType { kind, optional: false }, default));
    }
    let inputs = signature.inputs.len();
    let element = |index| if index < inputs { ElementType::Any } else { ElementType::NotTensor };
    let elements: Vec<ElementType> = (0..args.len()).map(element).collect();
    let output_kind = if signature.dynamic_output { ArgKind::Tensors } else { ArgKind::Tensor };
    let returns: Vec<ReturnDef> = signature
        .outputs
        .iter()
        .map(|name| ReturnDef { name: Some(leak(name)), ty: ArgType { kind: output_kind, optional: false } })
        .collect();
    let entries = DType::ALL.map(|dtype| (dtype, run as KernelFn));
    let location = leak(&format!("{}:{}", active.kernel.source.display(), active.kernel.function));
    let place = place_of(&active.kernel.source, &active.kernel.function).map_or("", |place| leak(&place));
    let table = Backend::ALL.into_iter().fold(KernelTable::new(), |table, backend| {
        table.with(backend, location, &entries).at(backend, place)
    });
    let all_inputs = (1u64 << inputs) - 1;
    // Without a gradient nothing is kept for it; asking for it is an error then.
    let reads = if active.bprop.is_some() { u64::MAX } else { 0 };
    let formula = GradientFormula {
        arguments: (0..inputs as u8).collect::<Vec<u8>>().leak(),
        reads_arguments: reads & all_inputs,
        reads_outputs: reads,
        reads_attributes: reads & !all_inputs,
        backends: u8::MAX,
        backward: gradient::backward,
    };
    let schema = Schema { text: leak(text), args: args.leak(), returns: returns.leak() };
    let grad = GradDef {
        formulas: vec![formula].leak(),
        differentiable_outputs: u64::MAX,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    };
    Box::leak(Box::new(OpDef {
        doc: leak(doc),
        custom: Some(Box::leak(Box::new(Declared { active: RwLock::new(None) }))),
        element_types: elements.leak(),
        contiguous: all_inputs,
        // SAFETY: `run` takes any call: it reads arguments by the types of the operator's declaration.
        kernels: unsafe { Kernels::of(Box::leak(Box::new(table))) },
        grad: Some(Box::leak(Box::new(grad))),
        ..OpDef::new(leak(&signature.name), schema, location, home())
    }))
}

/// File and line of a function in a source of C, C++ or CUDA; `None` for a library, and for a name that macros paste together.
fn place_of(source: &Path, function: &str) -> Option<String> {
    if source.extension().is_some_and(|extension| extension == "so") {
        return None;
    }
    let file = KernelFile::allowed(source).ok()?;
    // Comments may be in another encoding.
    let text = String::from_utf8_lossy(file.read().ok()?);
    let line = cpp::definition(&text, function)?;
    Some(format!("{}:{line}", source.display()))
}

fn argument(name: &'static str, ty: ArgType, default: Option<DefaultValue>) -> ArgDef {
    ArgDef { default, ..ArgDef::new(name, ty) }
}

/// The library that operators declared at run time belong to: it builds on all that are linked, so that
/// gradients are summed and converted as theirs are.
fn home() -> &'static Library {
    static HOME: LazyLock<&'static Library> = LazyLock::new(|| {
        Box::leak(Box::new(Library {
            name: "declared at run time",
            parents: opsmith_runtime::library::linked().collect::<Vec<_>>().leak(),
            ..Library::EMPTY
        }))
    });
    *HOME
}

#[cfg(test)]
mod tests {
    use super::place_of;

    #[test]
    fn a_place_is_that_of_the_definition() {
        let path = std::env::temp_dir().join(format!("opsmith-place-{}.cc", std::process::id()));
        let text =
            b"// \xe4\nint Kernel(int);\nint user() { return Kernel(1); }\nint Kernel(\n  int x) {\n}\nMADE(Other) {\n}\n";
        std::fs::write(&path, text).unwrap();
        let places = ["Kernel", "Other", "Ker"].map(|function| place_of(&path, function));
        std::fs::remove_file(&path).unwrap();
        let line = |line: usize| Some(format!("{}:{line}", path.display()));
        assert_eq!(places, [line(4), line(7), None]);
    }
}
