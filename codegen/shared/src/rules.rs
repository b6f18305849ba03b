//! The named inference rules a spec can use, with their parameters.
//!
//! In: nothing. Out: an enum for shapes and one for dtypes, each made from one table. The generator checks
//! calls against the tables; the runtime implements each rule under the same name in
//! `opsmith_runtime::infer` (a test of the workspace compares the two) and matches the enums exhaustively
//! where sizes may be unknown. Nothing here knows expressions or tensors.

/// The type of a rule's parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleParam {
    /// Any number of tensors (and, for dtype rules, scalars), at least one.
    Operands,
    /// One tensor.
    Tensor,
    /// A list of tensors.
    Tensors,
    /// An integer.
    Int,
    /// A list of integers.
    Ints,
    /// A list of integers that may be absent.
    OptionalInts,
    /// A truth value.
    Bool,
    /// A dtype that may be absent.
    OptionalDType,
}

/// An enum of rules and its table, a row each: variant, name in the spec, parameters, meaning.
macro_rules! rules {
    (
        $(#[$doc:meta])*
        $rule:ident in $table:ident as $of:ident {
            $($variant:ident = $name:literal($($param:ident),*): $meaning:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $rule {
            $(#[doc = $meaning] $variant,)*
        }

        impl $rule {
            /// The name written in the spec, which is that of the runtime's function.
            pub const fn name(self) -> &'static str {
                match self { $($rule::$variant => $name,)* }
            }

            /// The variant's identifier.
            pub const fn ident(self) -> &'static str {
                match self { $($rule::$variant => stringify!($variant),)* }
            }

            /// The parameters, in order.
            pub const fn params(self) -> &'static [RuleParam] {
                match self { $($rule::$variant => &[$(RuleParam::$param),*],)* }
            }

            /// The result in words, for documents and error messages.
            pub const fn doc(self) -> &'static str {
                match self { $($rule::$variant => $meaning,)* }
            }
        }

        impl From<$rule> for Rule {
            fn from(rule: $rule) -> Rule {
                Rule::$of(rule)
            }
        }

        $(#[$doc])*
        pub const $table: &[Rule] = &[$(Rule::$of($rule::$variant)),*];
    };
}

rules! {
    /// Rules for `shape:`; each gives one list of sizes.
    ShapeRule in SHAPE_RULES as Shape {
        Follow = "follow"(Tensor): "the shape of the given input",
        Broadcast = "broadcast"(Operands): "the shapes of the operands, broadcast together",
        Reduce = "reduce"(Tensor, OptionalInts, Bool):
            "the input's shape without the reduced dimensions, which stay as size 1 if the flag is set; no dimensions given means all",
        Matmul = "matmul"(Tensor, Tensor): "the matrix product's shape, leading dimensions broadcast",
        Cat = "cat"(Tensors, Int): "the shapes joined along one dimension",
        Full = "full"(Ints): "the given sizes",
    }
}

rules! {
    /// Rules for `dtype:` and `compute:`; each gives one dtype.
    DTypeRule in DTYPE_RULES as DType {
        Follow = "follow"(Tensor): "the dtype of the given input",
        Same = "same"(Operands): "the dtype all operands share; different dtypes are an error",
        Promote = "promote"(Operands): "the operands' promoted dtype",
        PromoteFloat = "promote_float"(Operands):
            "the operands' promoted dtype; an integer result becomes the default float",
        Real = "real"(Tensor): "the dtype of the input's real part",
        Opmath = "opmath"(Tensor): "the dtype in which kernels compute with the input: `float32` for 16-bit floats",
        Complex = "complex"(Tensor): "the complex dtype whose parts hold the input",
        Accumulate = "accumulate"(Tensor, OptionalDType):
            "the given dtype, else int64 for integers and bool, else the input's",
        OrDefault = "or_default"(OptionalDType): "the given dtype, else the default float",
    }
}

/// A rule of either table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// A list of sizes.
    Shape(ShapeRule),
    /// A dtype.
    DType(DTypeRule),
}

/// The functions of a rule that both tables have.
macro_rules! of_either {
    ($($(#[$doc:meta])* $function:ident: $result:ty;)*) => {
        impl Rule {
            $(
                $(#[$doc])*
                pub const fn $function(self) -> $result {
                    match self {
                        Rule::Shape(rule) => rule.$function(),
                        Rule::DType(rule) => rule.$function(),
                    }
                }
            )*
        }
    };
}

of_either! {
    /// The name written in the spec, which is that of the runtime's function.
    name: &'static str;
    /// The identifier of the variant.
    ident: &'static str;
    /// The parameters, in order.
    params: &'static [RuleParam];
    /// The result in words, for documents and error messages.
    doc: &'static str;
}
