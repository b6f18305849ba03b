//! The named inference rules a spec can use, with their parameters.
//!
//! The generator checks calls against this table; the runtime implements each rule under the same
//! name in `opsmith_runtime::infer` (a test of the workspace compares the two).

/// What a parameter of a rule accepts.
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

/// A named rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name written in the spec.
    pub name: &'static str,
    /// The parameters, in order.
    pub params: &'static [RuleParam],
    /// What the rule says, for documents and error messages.
    pub doc: &'static str,
}

/// Rules for `shape:`; each gives one list of sizes.
pub const SHAPE_RULES: &[Rule] = &[
    Rule { name: "follow", params: &[RuleParam::Tensor], doc: "the shape of the given input" },
    Rule {
        name: "broadcast",
        params: &[RuleParam::Operands],
        doc: "the shapes of the operands, broadcast together",
    },
    Rule {
        name: "reduce",
        params: &[RuleParam::Tensor, RuleParam::OptionalInts, RuleParam::Bool],
        doc: "the input's shape without the reduced dimensions, which stay as size 1 if the flag is set; no dimensions given means all",
    },
    Rule {
        name: "matmul",
        params: &[RuleParam::Tensor, RuleParam::Tensor],
        doc: "the matrix product's shape, leading dimensions broadcast",
    },
    Rule {
        name: "cat",
        params: &[RuleParam::Tensors, RuleParam::Int],
        doc: "the shapes joined along one dimension",
    },
    Rule { name: "full", params: &[RuleParam::Ints], doc: "the given sizes" },
];

/// Rules for `dtype:` and `compute:`; each gives one dtype.
pub const DTYPE_RULES: &[Rule] = &[
    Rule { name: "follow", params: &[RuleParam::Tensor], doc: "the dtype of the given input" },
    Rule {
        name: "same",
        params: &[RuleParam::Operands],
        doc: "the dtype all operands share; different dtypes are an error",
    },
    Rule { name: "promote", params: &[RuleParam::Operands], doc: "the operands' promoted dtype" },
    Rule {
        name: "promote_float",
        params: &[RuleParam::Operands],
        doc: "the operands' promoted dtype; an integer result becomes the default float",
    },
    Rule { name: "real", params: &[RuleParam::Tensor], doc: "the dtype of the input's real part" },
    Rule {
        name: "complex",
        params: &[RuleParam::Tensor],
        doc: "the complex dtype whose parts hold the input",
    },
    Rule {
        name: "accumulate",
        params: &[RuleParam::Tensor, RuleParam::OptionalDType],
        doc: "the given dtype, else int64 for integers and bool, else the input's",
    },
    Rule {
        name: "or_default",
        params: &[RuleParam::OptionalDType],
        doc: "the given dtype, else the default float",
    },
];

/// The shape rule of that name.
pub fn shape_rule(name: &str) -> Option<&'static Rule> {
    SHAPE_RULES.iter().find(|rule| rule.name == name)
}

/// The dtype rule of that name.
pub fn dtype_rule(name: &str) -> Option<&'static Rule> {
    DTYPE_RULES.iter().find(|rule| rule.name == name)
}
