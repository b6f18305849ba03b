//! Mistakes in the body of an operator: expressions, kernels, views, compositions.

use std::collections::BTreeSet;

use super::super::suggest::nearest;
use super::super::{Diagnostic, Span};
use super::{did_you_mean, near_or_all, ticked};

/// A backend that does not exist.
pub fn backend_unknown(span: Span, key: &str, known: &[&str]) -> Diagnostic {
    let foreign = match key {
        "CompositeImplicitAutograd" | "CompositeExplicitAutograd" => {
            Some("write the operators it calls after `decompose:`".into())
        }
        "GPU" | "gpu" | "cuda" | "Cuda" => Some(did_you_mean("CUDA")),
        "Meta" => Some("inference is declared with `shape:` and `dtype:`".into()),
        "Autograd" | "AutogradCPU" | "AutogradCUDA" => {
            Some("gradients are declared under `derivatives:`".into())
        }
        _ => None,
    };
    Diagnostic::error("E0450", format!("there is no backend `{key}`"), span, "unknown backend")
        .with_help(foreign.unwrap_or_else(|| near_or_all(key, known, "keys")))
}

/// `view: true` without a layout function, or the other way round.
pub fn view_half(span: Span, label: &str) -> Diagnostic {
    Diagnostic::error("E0451", "a view is declared by its flag and its layout function", span, label).with_help(
        "write `view: true` and name the function that gives the output's layout: `dispatch: {View: views::transpose}`",
    )
}

/// A view whose signature has no base or another result.
pub fn view_signature(span: Span, label: &str) -> Diagnostic {
    Diagnostic::error("E0459", "a view shows the memory of its first argument", span, label)
        .with_help("start the arguments with the base, a `Tensor`, and return `Tensor` or `Tensor[]`")
}

/// `pointwise` with results other than one tensor.
pub fn pointwise_results(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0452", "a pointwise operator returns one tensor", span, format!("`{name}` does not"))
        .with_help("write a kernel for operators with other results")
}

/// An argument without one element per position.
pub fn pointwise_argument(span: Span, argument: Span, name: &str, ty: &str) -> Diagnostic {
    let message = format!("the argument `{name}` has no element at each place");
    Diagnostic::error("E0457", message, argument, format!("this is a `{ty}`"))
        .with_secondary(span, "one element is computed here")
        .with_help("pointwise operators take tensors that are always there, and attributes; write a kernel, or `decompose`")
}

/// More tensors than a loop supports.
pub fn pointwise_too_many(span: Span, count: usize, limit: usize) -> Diagnostic {
    let message = format!("a pointwise operator takes at most {limit} tensors, this one takes {count}");
    Diagnostic::error("E0469", message, span, "too many tensors")
        .with_help("write a kernel, or build it from smaller operators with `decompose`")
}

/// A tensor that does not contribute to the output's shape.
pub fn pointwise_shape(span: Span, name: &str, op: &str, read: &[&str]) -> Diagnostic {
    let message = format!("`{name}` need not have the shape of `{op}`'s output");
    Diagnostic::error("E0476", message, span, "reads an element of it for each element of the output")
        .with_help(format!("write `shape: broadcast({})`, or leave `shape` out", read.join(", ")))
}

/// A tensor whose elements are not converted to the compute dtype.
pub fn pointwise_element(span: Span, name: &str, what: &str) -> Diagnostic {
    let message = format!("the elements of `{name}` do not go into the arithmetic");
    Diagnostic::error("E0458", message, span, what).with_help(
        "elements are of the computed dtype, its real part or bool; write a kernel, or `decompose`",
    )
}

/// An output dtype that differs from the expression's.
pub fn pointwise_output(span: Span, dtype: &str) -> Diagnostic {
    let message = format!("a pointwise operator cannot give `{dtype}`");
    Diagnostic::error("E0499", message, span, "not the dtype that is computed in").with_help(
        "the output is of the computed dtype, its real part or bool; set `compute:` to the same rule, or write a kernel",
    )
}

/// A scalar function or symbol on dtypes it is not defined for.
pub fn not_for_every_dtype(
    span: Span,
    what: &str,
    op: &str,
    missing: &[&str],
    declared: Option<Span>,
) -> Diagnostic {
    let message = format!("`{what}` is not defined for every dtype of `{op}`");
    let diagnostic = Diagnostic::error("E0453", message, span, format!("not for {}", missing.join(", ")))
        .with_help("narrow `dtypes`, or compute in floats with `dtype: promote_float(…)`");
    match declared {
        Some(place) => diagnostic.with_secondary(place, "declared here"),
        None => diagnostic,
    }
}

/// An operator without a body.
pub fn no_body(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0454", format!("nothing computes `{name}`"), span, "no body")
        .with_help("add `pointwise: …`, `dispatch: {CPU: …}` or `decompose: …`")
}

/// Several bodies that exclude each other.
pub fn bodies_exclude(span: Span, key: &str, other: Span, other_key: &str) -> Diagnostic {
    let message = format!("`{key}` and `{other_key}` exclude each other");
    Diagnostic::error("E0474", message, span, "one of them is never used")
        .with_secondary(other, "the other one")
        .with_help("remove one of them")
}

/// Kernels without a shape.
pub fn kernel_without_shape(span: Span, name: &str) -> Diagnostic {
    let message = format!("the kernels of `{name}` need a shape to write");
    Diagnostic::error("E0455", message, span, "`shape` is missing")
        .with_help("add `shape:` and `dtype:`; kernels write into outputs that inference has sized")
}

/// Kernels of an operator that returns a list or no tensor.
pub fn kernel_results(span: Span, result: Span, name: &str) -> Diagnostic {
    let message = format!("a kernel cannot give the results of `{name}`");
    Diagnostic::error("E0439", message, span, "kernels write into single tensors")
        .with_secondary(result, "returned here")
        .with_help("a list is given by a view, by `decompose:` or, with `length:`, by a kernel in Rust; a value that is no tensor by `dispatch: {Host: …}`")
}

/// A host function of an operator that returns tensors.
pub fn host_results(span: Span, result: Span) -> Diagnostic {
    Diagnostic::error("E0449", "a host function gives a value that is not a tensor", span, "host function")
        .with_secondary(result, "returned here")
        .with_help("name a kernel of a backend, as in `dispatch: {CPU: …}`")
}

/// A composition of an operator that returns no tensors.
pub fn decompose_results(span: Span, result: Span) -> Diagnostic {
    Diagnostic::error("E0468", "a composition gives tensors", span, "composition")
        .with_secondary(result, "returned here")
        .with_help("a value that is no tensor is given by a host function: `dispatch: {Host: …}`")
}

/// An output whose dtype is unknown to kernels.
pub fn output_element_unknown(span: Span, name: &str, output: usize) -> Diagnostic {
    let message = format!("the element type of output {output} of `{name}` is unknown to its kernels");
    Diagnostic::error("E0456", message, span, "differs from the dtype that chooses the kernel")
        .with_help("set `compute:` to the same rule, or give the output a fixed dtype")
}

/// A kernel's text that is not a path.
pub fn kernel_path(span: Span, label: &str) -> Diagnostic {
    Diagnostic::error("E0470", "this is not the path of a Rust function", span, label).with_help(
        "write names separated by `::`, as in `linalg::mm`; a C or C++ function is written `kernels/cpu/flip.cc:symbol`",
    )
}

/// An unknown argument given to a kernel.
pub fn kernel_argument(span: Span, op: &str, name: &str, known: &[&str]) -> Diagnostic {
    let message = format!("`{op}` has no argument `{name}` to give to the kernel");
    Diagnostic::error("E0477", message, span, "no such argument").with_help(near_or_all(
        name,
        known,
        "arguments",
    ))
}

/// `updates` of an operator that has nothing to update.
pub fn updates_signature(span: Span, problem: &str) -> Diagnostic {
    Diagnostic::error("E0544", "kernels cannot update a copy of the first argument", span, problem)
        .with_help("`updates: true` is for kernels in Rust that change one tensor, which starts as a copy of the first argument")
}

/// Operations of a kernel where there is none.
pub fn flops_without_kernel(span: Span, op: &str) -> Diagnostic {
    Diagnostic::error(
        "E0546",
        format!("`{op}` has no kernel whose operations could be counted"),
        span,
        "of no kernel",
    )
    .with_help(
        "remove `flops`: the operations of a composition or a view are those of the operators that it calls",
    )
}

/// A kernel with a parameter for the argument that it updates.
pub fn updates_kernel(span: Span, key: Span) -> Diagnostic {
    Diagnostic::error("E0545", "this kernel takes the argument that it updates", span, "a result that starts as its copy")
        .with_secondary(key, "the kernel gets no first argument")
        .with_help("write a kernel in Rust that takes the other arguments and the result; those of other languages take all")
}

/// A foreign kernel's symbol that is not a C identifier.
pub fn kernel_symbol(span: Span, symbol: &str, label: &str) -> Diagnostic {
    let message = match symbol {
        "" => "the kernel's function is missing".to_owned(),
        _ => format!("`{symbol}` cannot be the name of a C function"),
    };
    Diagnostic::error("E0471", message, span, label)
        .with_help("write the file, a colon and the function, as in `kernels/cpu/flip.cc:opsmith_cpu_flip`")
}

/// A foreign kernel's file with an invalid path.
pub fn kernel_file(span: Span, label: &str) -> Diagnostic {
    Diagnostic::error("E0703", "this is not a file of C or C++", span, label)
        .with_help("name a file relative to the spec, ending in `.c`, `.cc`, `.cpp`, `.cxx` or `.cu`")
}

/// A custom kernel's file with an invalid path.
pub fn aot_file(span: Span, label: &str) -> Diagnostic {
    Diagnostic::error("E0478", "this is not the file of a custom kernel", span, label).with_help(
        "name a file relative to the spec, ending in `.cc`, `.cpp`, `.cxx`, `.cu` or `.so`, a colon and the function: \
         `aot:kernels/add_reduce.cc:CustomKernel`",
    )
}

/// A custom kernel in CUDA under the host's key.
pub fn aot_target(span: Span) -> Diagnostic {
    Diagnostic::error("E0489", "a kernel in CUDA does not run on the CPU", span, "a source for CUDA").with_help(
        "write it under the key `CUDA`: tensors of the host are copied to the device and back where nothing else \
         computes them; a kernel that runs on the host belongs into a `.cc` file",
    )
}

/// An argument that custom kernels do not support.
pub fn aot_argument(span: Span, op: &str, name: &str, ty: &str, why: &str) -> Diagnostic {
    let message = format!("the kernel of `{op}` cannot get the argument `{name}`, a {ty}");
    Diagnostic::error("E0479", message, span, why.to_owned())
        .with_help("arguments of custom kernels are tensors, one list of tensors, numbers, texts, dtypes and lists of numbers; else write the kernel for the generated header, without `aot:`")
}

/// A foreign kernel's file that does not exist.
pub fn kernel_file_missing(span: Span, path: &str) -> Diagnostic {
    Diagnostic::error("E0472", format!("there is no file `{path}`"), span, "not found")
        .with_help("paths are relative to the folder of the spec")
}

/// A kernel's function that is missing in its file; `known` are the names there.
pub fn kernel_function_missing(
    span: Span,
    path: &str,
    function: &str,
    known: &BTreeSet<String>,
) -> Diagnostic {
    let near = nearest(function, known.iter().map(String::as_str));
    let help =
        near.map_or_else(|| "define it there, as `extern \"C\"`, or correct the name".into(), did_you_mean);
    Diagnostic::error(
        "E0498",
        format!("there is no function `{function}` in `{path}`"),
        span,
        "not found there",
    )
    .with_help(help)
}

/// One C function as the kernel of two operators.
pub fn kernel_symbol_twice(span: Span, symbol: &str, first: Span) -> Diagnostic {
    Diagnostic::error("E0473", format!("`{symbol}` is the kernel of two operators"), span, "again here")
        .with_secondary(first, "first here")
        .with_help("a C function has one signature: write one function for each operator")
}

/// Operators that are composed of each other in a cycle.
pub fn decompose_cycle(span: Span, name: &str, chain: &[&str], others: &[Span]) -> Diagnostic {
    let (message, label) = match chain {
        [_] => (format!("`{name}` is built from itself"), "never ends".to_owned()),
        _ => (
            format!("`{name}` is built from itself, through {}", ticked(chain[1..].iter().copied())),
            format!("needs `{}`", chain[1]),
        ),
    };
    let mut diagnostic = Diagnostic::error("E0475", message, span, label);
    for (index, place) in others.iter().enumerate() {
        let next = chain.get(index + 2).copied().unwrap_or(name);
        diagnostic = diagnostic.with_secondary(*place, format!("needs `{next}`"));
    }
    diagnostic.with_help("write one of them without the others, as `pointwise:` or with a kernel only")
}

/// `supplied: {f: …}` where no form is named `f`.
pub fn supplied_form(span: Span, op: &str, name: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("E0488", format!("`{op}` has no form `{name}`"), span, "no form of that name")
        .with_help(super::near_or_all(name, known, "forms"))
}

/// A path of a Rust function that does not exist.
pub fn rust_function_missing(
    span: Span,
    path: &str,
    name: &str,
    file: &str,
    near: Option<&str>,
) -> Diagnostic {
    let message = format!("there is no Rust function `{path}`");
    Diagnostic::error("E0540", message, span, format!("nothing is called `{name}` in {file}")).with_help(
        match near {
            Some(near) => did_you_mean(near),
            None => format!("write it in {file}, or name one that is there").into(),
        },
    )
}

/// A Rust function whose parameters do not match its arguments.
pub fn rust_function_type(span: Span, path: &str, problem: &str, at: &str, wanted: &str) -> Diagnostic {
    Diagnostic::error("E0541", format!("`{path}` does not match this entry's declaration"), span, problem)
        .with_help(format!("change the function at {at}, or the entry: the call passes `{wanted}`"))
}
