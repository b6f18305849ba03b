//! The checked model to files, one emitter each.
//!
//! In: a [`Model`]. Out: [`File`]s with their text. Emitters never see YAML and never touch the disk.

mod adapter;
mod api;
mod bind;
mod combined;
mod default;
mod defs;
mod device;
mod document;
mod enums;
mod example;
mod expr;
mod format;
pub mod formatted;
mod forward;
mod gradients;
mod header;
mod hoisted;
mod infer;
mod kernels;
mod library;
mod methods;
mod names;
mod options;
mod pieces;
mod pointwise;
mod rules;
mod samples;
mod signature;
mod words;

use std::ops::Range;

use proc_macro2::TokenStream;

use self::formatted::{Formatted, PieceOfFile};
use crate::config::{Config, RustPath, Tables};
use crate::model::{Model, Op};

pub use document::{default as default_in_words, difference as form_in_words};
pub use example::{WorkedExample, WorkedTensor, worked};
pub use header::{HEADER, c_declarations, declaration as c_declaration};
pub use names::raw_name;
pub use signature::{Signature, rust_kernel_parameters, rust_kernel_signature, signatures};
pub use signature::{host_parameter_types, kernel_parameter_types, view_parameter_types};
pub use words::{
    ResultWords, constraints as constraints_in_words, errors as errors_in_words, gives as function_in_words,
    named as dtypes_in_words, notes as notes_of_argument, rules_of_results, source_of_gradients, words,
};

/// The folder of the generated files inside `OUT_DIR`.
pub const FOLDER: &str = "opsmith";

/// A generated file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its name inside the output folder.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The shares of the text that can be taken over by another run.
    pub pieces: Vec<PieceOfFile>,
}

/// An emitter of Rust code.
pub struct Emitter {
    /// The module it writes, which is also the file's name.
    pub module: &'static str,
    /// Where the emitter's own source is.
    pub source: &'static str,
    /// Whether users see the module.
    pub public: bool,
    /// Whether every operator has items of its own in it.
    pub by_operator: bool,
    /// Whether a few operators can be written without the others, so that it is done in pieces.
    pub divisible: bool,
    /// The contents of the module, for its documentation.
    pub doc: &'static str,
    /// The other modules that its text names.
    pub siblings: &'static [&'static str],
    /// Names its text uses without a path, as an import from the runtime; with `*` every type.
    pub imports: &'static str,
    /// Writes it.
    pub emit: fn(&Generation<'_>) -> TokenStream,
}

impl Emitter {
    /// Whether a crate that is configured so has the module.
    fn is_part_of(&self, config: &Config) -> bool {
        match config.tables {
            Tables::Inside => true,
            Tables::Of(_) => self.module != TABLES,
            Tables::Families(_) => self.module == TABLES,
        }
    }

    /// Its text as tokens, with types as the module imports them.
    fn tokens(&self, generation: &Generation<'_>) -> TokenStream {
        let code = (self.emit)(generation);
        match self.imports.contains('*') {
            true => names::imported(code, &enums::names(generation)),
            false => code,
        }
    }
}

/// The module that may be in a crate of its own.
const TABLES: &str = "kernel_tables";

/// The emitters of Rust code, in the order of their modules.
pub const EMITTERS: &[Emitter] = &[
    Emitter {
        module: "defs",
        source: "codegen/src/emit/defs.rs",
        public: true,
        by_operator: true,
        divisible: true,
        doc: "The definition of each operator, as the dispatcher reads it.",
        siblings: &["gradients", "inference", "kernel_tables", "library", "rules"],
        imports: "{DType, DTypeSet, constraint::{Constraint, Literal}, facts::{Deprecated, Facts, Lines, NumberUse, ValueUse}, op::{ArgDef, ArgKind, Combination, DefaultValue, ElementType::{Any, Dispatch, Fixed, NotTensor, Opmath, Real}, Flops, Forms, ItemKind, OpDef, ReturnDef, UniformCall, ViewFn, bits}, sample::{Check, Sample, SampleTensor, SampleValue::{self, Bool, Complex, Float, Int, List, Str}, Tolerance, ToleranceOf, between, integers, mask, numbers, places, spread}}",
        emit: defs::emit,
    },
    Emitter {
        module: "raw",
        source: "codegen/src/emit/api.rs",
        public: true,
        by_operator: true,
        divisible: true,
        doc: "Each operator with all its arguments in order, for generated formulas.",
        siblings: &["defs"],
        imports: "{*, generated::call}",
        emit: api::emit_raw,
    },
    Emitter {
        module: "functions",
        source: "codegen/src/emit/api.rs",
        public: false,
        by_operator: true,
        divisible: true,
        doc: "The functions users call.",
        siblings: &["defs"],
        imports: "{*, generated::call}",
        emit: api::emit_functions,
    },
    Emitter {
        module: "methods",
        source: "codegen/src/emit/methods.rs",
        public: false,
        by_operator: true,
        divisible: false,
        doc: "The same operators as methods of tensors.",
        siblings: &["functions"],
        imports: "{*, generated::call}",
        emit: methods::emit,
    },
    Emitter {
        module: "inference",
        source: "codegen/src/emit/infer.rs",
        public: false,
        by_operator: true,
        divisible: true,
        doc: "Shape and dtype inference.",
        siblings: &["defs", "raw"],
        imports: "{*, generated::call, infer::{device_of, dtype, shape}, op::Inferred}",
        emit: infer::emit,
    },
    Emitter {
        module: "rules",
        source: "codegen/src/emit/rules.rs",
        public: false,
        by_operator: true,
        divisible: true,
        doc: "The same rules as data, for sizes that are not known yet.",
        siblings: &[],
        imports: "{DType, infer::expr::{Conversion, DTypeRule, Expr::{self, Arg}, Operation, Query, RuleCheck, Rules, ShapeRule}}",
        emit: rules::emit,
    },
    Emitter {
        module: TABLES,
        source: "codegen/src/emit/kernels.rs",
        public: false,
        by_operator: true,
        divisible: false,
        doc: "Kernels by backend and dtype.",
        siblings: &[],
        imports: "{*, arith::{Arithmetic, Ordered}, generated::{declared::Misfit as _, device_loop, foreign as abi, pointwise}, op::{KernelCall, KernelFn, KernelTable}}",
        emit: kernels::emit,
    },
    Emitter {
        module: "gradients",
        source: "codegen/src/emit/gradients.rs",
        public: false,
        by_operator: true,
        divisible: true,
        doc: "Backward formulas, and forward ones that the spec writes.",
        siblings: &["raw"],
        imports: "{*, autograd::{GradContext, Gradient}, generated::call, infer::{dtype, shape}, op::{Forward, GradientFormula, GradDef, Gradients, bits}}",
        emit: gradients::emit,
    },
    Emitter {
        module: "words",
        source: "codegen/src/emit/words.rs",
        public: false,
        by_operator: true,
        divisible: true,
        doc: "Sentences about each operator, for documents in other languages.",
        siblings: &[],
        imports: "{DType, library::{ExampleCall, ExampleTensor, Words}}",
        emit: words::emit,
    },
    Emitter {
        module: "library",
        source: "codegen/src/emit/library.rs",
        public: false,
        by_operator: false,
        divisible: false,
        doc: "The table of all operators, and calls by name.",
        siblings: &["defs", "raw", "words"],
        imports: "library::{Documentation, Form, Library, OperandKind, OperatorRow, Roles, Operation}",
        emit: library::emit,
    },
];

/// The input of emitters.
pub struct Generation<'a> {
    /// The operators.
    pub model: &'a Model,
    /// Paths of the crates the code refers to.
    pub config: &'a Config,
    /// Which operators to write.
    pub selection: Selection<'a>,
}

/// Which operators to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection<'a> {
    /// Every one.
    All,
    /// One, by its full name.
    Named(&'a str),
    /// Some, by their numbers in the model.
    Range(Range<usize>),
}

impl<'a> Generation<'a> {
    /// The operators this run generates; those of parent libraries exist already, and those with types of
    /// another project exist only there.
    pub fn own_ops(&self) -> impl Iterator<Item = &'a Op> + use<'a> {
        let (range, name) = match self.selection {
            Selection::All => (0..self.model.ops.len(), None),
            Selection::Named(name) => (0..self.model.ops.len(), Some(name)),
            Selection::Range(ref range) => (range.clone(), None),
        };
        let own =
            move |op: &&Op| !op.is_external() && op.is_callable() && name.is_none_or(|name| op.name == name);
        self.model.ops[range].iter().filter(own)
    }

    /// The operators whose functions this run generates. If it is one operator, the overload comes first at which the
    /// function stands that both have.
    pub(crate) fn ops_with_functions(&self) -> impl Iterator<Item = &'a Op> + use<'a> {
        let (ops, alone) = (&self.model.ops, matches!(self.selection, Selection::Named(_)));
        let leader = move |op: &Op| {
            let merged = op.merged.filter(|merged| alone && !merged.leads)?;
            Some(&ops[merged.with.0])
        };
        self.own_ops().flat_map(move |op| leader(op).into_iter().chain([op]))
    }

    /// Those of them that have a definition: all that are not another name of an operator.
    pub fn own_definitions(&self) -> impl Iterator<Item = &'a Op> + use<'a> {
        self.own_ops().filter(|op| op.alias_of.is_none())
    }

    /// The definition that a module of the library calls for an operator; of another name, that of the
    /// operator it stands for.
    pub(crate) fn definition(&self, op: &Op) -> TokenStream {
        let meant = op.alias_of.map_or(op, |target| &self.model.ops[target.0]);
        let (module, name) = (self.config.module(meant.parent, "defs"), names::def_name(meant));
        quote::quote!(#module::#name)
    }
}

/// Writes every file; a piece that an earlier run formatted is taken from there.
///
/// # Errors
/// If an emitter wrote something that is not Rust: a defect of the generator, reported with the text.
pub fn emit(generation: &Generation<'_>, earlier: &Formatted) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for (emitter, module) in EMITTERS.iter().zip(pieces::modules(generation, earlier)?) {
        if emitter.is_part_of(generation.config) {
            let mut text = head(emitter, generation);
            let mut pieces = module.pieces;
            pieces.iter_mut().for_each(|piece| piece.start += text.len());
            text.push_str(&module.text);
            files.push(File { name: format!("{}.rs", emitter.module), text, pieces });
        }
    }
    files.push(root(generation)?);
    files.push(header::emit(generation));
    Ok(files)
}

/// One operator's share of a generated file.
pub struct Part {
    /// The emitter's name: that of the file without its ending.
    pub name: &'static str,
    /// Where the emitter's own source is.
    pub source: &'static str,
    /// The text.
    pub text: String,
}

/// One operator's share of every file; `generation` names the operator.
///
/// # Errors
/// As [`emit`].
pub fn emit_operator(generation: &Generation<'_>) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for emitter in EMITTERS.iter().filter(|emitter| emitter.by_operator) {
        let text = format::source(emitter.tokens(generation), || emitter.tokens(generation))?;
        parts.push(Part { name: emitter.module, source: emitter.source, text });
    }
    parts.push(header::part(generation));
    parts.retain(|part| !part.text.is_empty());
    Ok(parts)
}

fn head(emitter: &Emitter, generation: &Generation<'_>) -> String {
    format!(
        "// @generated from {} by {}.\n// One operator's share: `opsmith expand NAME`.\n\n",
        generation.config.spec_name, emitter.source
    )
}

/// A module for each emitter, and for tables that other crates have.
fn modules<'a>(config: &Config, written: impl Iterator<Item = &'a Emitter>) -> TokenStream {
    let (runtime, kernels) = (&config.runtime, &config.kernels);
    let mut modules = TokenStream::new();
    for emitter in written {
        let module = quote::format_ident!("{}", emitter.module);
        let siblings = emitter.siblings.iter().map(|sibling| quote::format_ident!("{sibling}"));
        // Of the module alone: a function of the library may have its name.
        let siblings =
            (!emitter.siblings.is_empty()).then(|| quote::quote!(use super::{#(#siblings::{self}),*};));
        let path = format!("/{}/{}.rs", FOLDER, emitter.module);
        let doc = names::doc(emitter.doc);
        let imports = (!emitter.imports.is_empty()).then(|| {
            let names: TokenStream = emitter.imports.parse().expect("a literal list of names");
            quote::quote!(use #runtime::#names;)
        });
        modules.extend(quote::quote! {
            #doc
            pub mod #module {
                use #runtime as rt;
                use #kernels::{self as kernels};
                #siblings
                #imports
                include!(concat!(env!("OUT_DIR"), #path));
            }
        });
    }
    if let Tables::Of(crates) = &config.tables {
        let module = quote::format_ident!("{TABLES}");
        modules.extend(quote::quote! {
            /// Kernels by backend and dtype.
            pub mod #module {
                #(pub use #crates::#module::*;)*
            }
        });
    }
    modules
}

/// The crates of the libraries that this one builds on, if there are any.
fn parents(config: &Config) -> Option<TokenStream> {
    let parents: Vec<&RustPath> =
        config.parents.iter().filter(|parent| parent.direct).map(|parent| &parent.path).collect();
    (!parents.is_empty()).then(|| {
        quote::quote! {
            /// The crates of the libraries that this one builds on, for crates that build on this one.
            #[doc(hidden)]
            pub mod parents {
                #(pub use #parents;)*
            }
        }
    })
}

/// The file that `src/lib.rs` includes; it names the others.
fn root(generation: &Generation<'_>) -> Result<File, String> {
    let written = || EMITTERS.iter().filter(|emitter| emitter.is_part_of(generation.config));
    let modules = modules(generation.config, written());
    let alone = matches!(generation.config.tables, Tables::Families(_));
    let public = written().filter(|emitter| emitter.public || alone);
    let public = public.map(|emitter| quote::format_ident!("{}", emitter.module));
    let methods = names::methods_name(generation.config);
    let functions = (!alone).then(|| {
        quote::quote!(
            pub use functions::*;
        )
    });
    let api = (!alone).then(|| {
        let families = document::families(generation);
        quote::quote! {
            #families
            pub use generated::functions::*;
            pub use generated::library::{DOCUMENTATION, LIBRARY, call};
            pub use generated::methods::#methods;
        }
    });
    let mut tokens = quote::quote! {
        /// One module an emitter.
        #[allow(unused_imports, reason = "every module has the same imports")]
        #[allow(unused_variables, reason = "formulas and rules need not use every argument")]
        #[allow(unused_parens, reason = "expressions keep the parentheses that give them their order")]
        #[allow(non_snake_case, reason = "underscores and capital letters keep names of a spec apart")]
        #[allow(rustdoc::private_intra_doc_links, reason = "kernels may be private")]
        #[allow(missing_docs, reason = "a definition documents itself, and only generated code names it")]
        #[allow(deprecated, reason = "deprecated operators still have to work")]
        #[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
        mod generated {
            #modules
            #functions
        }

        #api
        #[doc(hidden)]
        pub use generated::{#(#public),*};
    };
    tokens.extend(parents(generation.config));
    let text = format::source(tokens.clone(), || tokens)?;
    Ok(File {
        name: "lib.rs".into(),
        text: format!("// @generated from {}.\n\n{text}", generation.config.spec_name),
        pieces: Vec::new(),
    })
}
