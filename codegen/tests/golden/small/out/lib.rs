// @generated from spec.yaml.

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
    /// The definition of each operator, as the dispatcher reads it.
    pub mod defs {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use super::{
            gradients::{self},
            inference::{self},
            kernel_tables::{self},
            library::{self},
            rules::{self},
        };
        use ::opsmith::runtime::{
            DType, DTypeSet, constraint::{Constraint, Literal},
            facts::{Deprecated, Facts, Lines, NumberUse, ValueUse},
            op::{
                ArgDef, ArgKind, Combination, DefaultValue,
                ElementType::{Any, Dispatch, Fixed, NotTensor, Opmath, Real},
                Flops, Forms, ItemKind, OpDef, ReturnDef, UniformCall, ViewFn, bits,
            },
            sample::{
                Check, Sample, SampleTensor,
                SampleValue::{self, Bool, Complex, Float, Int, List, Str},
                Tolerance, ToleranceOf, between, integers, mask, numbers, places, spread,
            },
        };
        include!(concat!(env!("OUT_DIR"), "/opsmith/defs.rs"));
    }
    /// Each operator with all its arguments in order, for generated formulas.
    pub mod raw {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use super::defs::{self};
        use ::opsmith::runtime::{*, generated::call};
        include!(concat!(env!("OUT_DIR"), "/opsmith/raw.rs"));
    }
    /// The functions users call.
    pub mod functions {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use super::defs::{self};
        use ::opsmith::runtime::{*, generated::call};
        include!(concat!(env!("OUT_DIR"), "/opsmith/functions.rs"));
    }
    /// The same operators as methods of tensors.
    pub mod methods {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use super::functions::{self};
        use ::opsmith::runtime::{*, generated::call};
        include!(concat!(env!("OUT_DIR"), "/opsmith/methods.rs"));
    }
    /// Shape and dtype inference.
    pub mod inference {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use super::{
            defs::{self},
            raw::{self},
        };
        use ::opsmith::runtime::{
            *, generated::call, infer::{device_of, dtype, shape},
            op::Inferred,
        };
        include!(concat!(env!("OUT_DIR"), "/opsmith/inference.rs"));
    }
    /// The same rules as data, for sizes that are not known yet.
    pub mod rules {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use ::opsmith::runtime::{
            DType,
            infer::expr::{
                Conversion, DTypeRule, Expr::{self, Arg},
                Operation, Query, RuleCheck, Rules, ShapeRule,
            },
        };
        include!(concat!(env!("OUT_DIR"), "/opsmith/rules.rs"));
    }
    /// Kernels by backend and dtype.
    pub mod kernel_tables {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use ::opsmith::runtime::{
            *, arith::{Arithmetic, Ordered},
            generated::{declared::Misfit as _, device_loop, foreign as abi, pointwise},
            op::{KernelCall, KernelFn, KernelTable},
        };
        include!(concat!(env!("OUT_DIR"), "/opsmith/kernel_tables.rs"));
    }
    /// Backward formulas, and forward ones that the spec writes.
    pub mod gradients {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use super::raw::{self};
        use ::opsmith::runtime::{
            *, autograd::{GradContext, Gradient},
            generated::call, infer::{dtype, shape},
            op::{Forward, GradientFormula, GradDef, Gradients, bits},
        };
        include!(concat!(env!("OUT_DIR"), "/opsmith/gradients.rs"));
    }
    /// Sentences about each operator, for documents in other languages.
    pub mod words {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use ::opsmith::runtime::{DType, library::{ExampleCall, ExampleTensor, Words}};
        include!(concat!(env!("OUT_DIR"), "/opsmith/words.rs"));
    }
    /// The table of all operators, and calls by name.
    pub mod library {
        use ::opsmith::runtime as rt;
        use crate::kernels::{self as kernels};
        use super::{
            defs::{self},
            raw::{self},
            words::{self},
        };
        use ::opsmith::runtime::library::{
            Documentation, Form, Library, OperandKind, OperatorRow, Roles, Operation,
        };
        include!(concat!(env!("OUT_DIR"), "/opsmith/library.rs"));
    }
    pub use functions::*;
}

/// The operators by the file of the spec that declares them; other forms of each (in place, out, with options) are on its page.
///
/// # `spec.yaml`
///
/// [`plus`](fn@plus), [`grown`](fn@grown), [`product`](fn@product), [`largest`](fn@largest), [`spread`](fn@spread), [`flipped`](fn@flipped), [`sum_and_growth`](fn@sum_and_growth), [`item`](fn@item)
///
pub mod operators_by_family {}

pub use generated::functions::*;
pub use generated::library::{DOCUMENTATION, LIBRARY, call};
pub use generated::methods::GoldenExt;
#[doc(hidden)]
pub use generated::{defs, raw};
