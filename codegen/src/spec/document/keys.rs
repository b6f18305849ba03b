//! The keys of a spec: one row each, the source of the checks, the documentation and the JSON schema.

use crate::diagnostics::catalogue::ShownKey;

/// The kind of a key's value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValueKind {
    /// Text, possibly over several lines.
    Text,
    /// `true` or `false`.
    Flag,
    /// A list of texts; one text is a list of one.
    TextList,
    /// A mapping from names to texts.
    TextMap,
    /// A mapping from names to texts or lists of them.
    TextListMap,
    /// A list of entries, each a mapping with keys of its own.
    Entries,
    /// Checked by the stage that reads the key.
    Any,
}

macro_rules! key_names {
    ($($variant:ident $name:literal,)*) => {
        /// A key. Later stages look values up by it, so that a misspelt key does not compile.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum KeyName {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl KeyName {
            /// Every key of a table.
            pub const ALL: &[KeyName] = &[$(KeyName::$variant),*];

            /// The key as it is written.
            pub const fn name(self) -> &'static str {
                match self { $(KeyName::$variant => $name,)* }
            }
        }
    };
}

key_names! {
    Edition "edition",
    Include "include",
    Features "features",
    ArgumentAliases "argument_aliases",
    Descriptions "descriptions",
    Namespaces "namespaces",
    Unlike "unlike",
    Functions "functions",
    Ops "ops",
    Declarations "declarations",
    Func "func",
    Ignored "ignored",
    Doc "doc",
    AliasOf "alias_of",
    Since "since",
    Deprecated "deprecated",
    Tags "tags",
    BackwardOnly "backward_only",
    KnownAs "known_as",
    Notation "notation",
    Formula "formula",
    Variants "variants",
    Inplace "inplace",
    Names "names",
    RustName "rust_name",
    Method "method",
    View "view",
    Attributes "attributes",
    Check "check",
    Contiguous "contiguous",
    Lines "lines",
    Rounded "rounded",
    Numbers "numbers",
    ValueDepends "value_depends",
    Types "types",
    Present "present",
    Length "length",
    Infer "infer",
    Shape "shape",
    RunSizes "run_sizes",
    RunShape "run_shape",
    Dtype "dtype",
    Compute "compute",
    Dtypes "dtypes",
    Combinations "combinations",
    Pointwise "pointwise",
    Dispatch "dispatch",
    Decompose "decompose",
    Flops "flops",
    Supplied "supplied",
    Operator "operator",
    Role "role",
    Derivatives "derivatives",
    NoBuffer "no_buffer",
    Intermediate "intermediate",
    Forward "forward",
    OutputDifferentiability "output_differentiability",
    Deterministic "deterministic",
    Updates "updates",
    Tolerance "tolerance",
    Samples "samples",
    Origin "origin",
    Rust "rust",
    Cuda "cuda",
    Op "op",
    Derivative "derivative",
    Wirtinger "wirtinger",
}

/// A key of an entry.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// The key.
    pub key: KeyName,
    /// The key as it is written.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ValueKind,
    /// Its meaning, in one line.
    pub doc: &'static str,
}

impl KeySpec {
    /// The key in messages.
    pub fn shown(&self) -> ShownKey {
        let KeySpec { name, kind, doc, .. } = *self;
        let expected = match kind {
            ValueKind::Text => format!("text after `{name}: `"),
            ValueKind::Flag => format!("`{name}: true` or `{name}: false`"),
            ValueKind::TextList => format!("a list such as `{name}: [a, b]`"),
            ValueKind::TextMap => format!("one `name: text` a line under `{name}:`"),
            ValueKind::TextListMap => {
                format!("one `name: text` or `name: [text, text]` a line under `{name}:`")
            }
            ValueKind::Entries => "a list of entries, each starting with `- func: `".to_owned(),
            ValueKind::Any => format!("a value after `{name}:`"),
        };
        let noun = if kind == ValueKind::TextList { "text or a list of texts" } else { "text" };
        ShownKey { name, doc, expected, noun, is_text: kind == ValueKind::Text }
    }
}

/// A row of a key table.
const fn key(key: KeyName, kind: ValueKind, doc: &'static str) -> KeySpec {
    KeySpec { key, name: key.name(), kind, doc }
}

/// The keys at the top of a file, in the order of `opsmith fmt`.
pub const FILE_KEYS: &[KeySpec] = &[
    key(KeyName::Edition, ValueKind::Text, "version of the spec language; this generator reads edition 1"),
    key(KeyName::Include, ValueKind::TextList, "other spec files to read, relative to this one"),
    key(
        KeyName::Features,
        ValueKind::TextListMap,
        "cargo features of the crate, each with included files that a build reads with one of their features alone",
    ),
    key(
        KeyName::ArgumentAliases,
        ValueKind::TextListMap,
        "other names for arguments in calls by name, for every operator that has such an argument",
    ),
    key(
        KeyName::Descriptions,
        ValueKind::TextMap,
        "meanings of arguments, for every operator that has such an argument and does not describe it itself",
    ),
    key(
        KeyName::Namespaces,
        ValueKind::TextMap,
        "prefixes of names in other libraries, each with the prefix that such names have here",
    ),
    key(
        KeyName::Unlike,
        ValueKind::TextMap,
        "names in other libraries that mean something else here, each with advice",
    ),
    key(KeyName::Functions, ValueKind::Entries, "scalar functions that pointwise expressions may call"),
    key(KeyName::Ops, ValueKind::Entries, "the operators"),
    key(
        KeyName::Declarations,
        ValueKind::Entries,
        "functions that formulas call and that another project supplies",
    ),
];

/// The keys of an entry of `ops:`, in the order of `opsmith fmt`.
pub const OP_KEYS: &[KeySpec] = &[
    key(KeyName::Func, ValueKind::Text, "signature in PyTorch's schema language"),
    key(KeyName::Ignored, ValueKind::TextList, "arguments that callers may give and that change nothing"),
    key(KeyName::Doc, ValueKind::Text, "what the operator computes; Markdown, first sentence first"),
    key(
        KeyName::Descriptions,
        ValueKind::TextMap,
        "meanings of arguments and named results, a sentence each",
    ),
    key(KeyName::AliasOf, ValueKind::Text, "operator this is another name of"),
    key(KeyName::Since, ValueKind::Text, "version that added the operator"),
    key(KeyName::Deprecated, ValueKind::TextMap, "`since` which version, and what to `use` instead"),
    key(KeyName::Tags, ValueKind::TextList, "words to find and group operators by"),
    key(
        KeyName::BackwardOnly,
        ValueKind::Flag,
        "whether only formulas and compositions call it: no method, and hidden in the documentation",
    ),
    key(KeyName::ArgumentAliases, ValueKind::TextListMap, "other names for arguments in calls by name"),
    key(
        KeyName::KnownAs,
        ValueKind::TextList,
        "names that other libraries have for the operator, without overload",
    ),
    key(
        KeyName::Notation,
        ValueKind::Text,
        "formula that documents write for a call, with arguments in braces: `{self} {mat2}`, `{self}^T`",
    ),
    key(
        KeyName::Formula,
        ValueKind::Text,
        "formula of the results where no expression gives an element: `y_i = exp({self}_i) / Σ_j exp({self}_j)`",
    ),
    key(
        KeyName::Variants,
        ValueKind::TextList,
        "forms to generate: functional, inplace, out; all that are possible if `pointwise` is given and this is not",
    ),
    key(KeyName::Inplace, ValueKind::TextMap, "which result the in-place form writes into which argument"),
    key(KeyName::Names, ValueKind::Any, "names of the outputs or of forms, if not the usual ones"),
    key(KeyName::RustName, ValueKind::Text, "name of the Rust function, if not the operator's"),
    key(KeyName::Method, ValueKind::Text, "argument that the operator is a method of, or `none`"),
    key(KeyName::View, ValueKind::Flag, "whether the output shares the input's memory"),
    key(
        KeyName::Attributes,
        ValueKind::Any,
        "values an attribute may have: min, max, above, below, one_of, multiple_of, enum, len, min_len",
    ),
    key(KeyName::Check, ValueKind::TextList, "conditions on the arguments, each one expression"),
    key(
        KeyName::Contiguous,
        ValueKind::TextList,
        "inputs that kernels want row-major; they are copied if they are not",
    ),
    key(KeyName::Lines, ValueKind::Text, "dimensions of lines that are computed each alone"),
    key(
        KeyName::Rounded,
        ValueKind::TextList,
        "numbers that a loop made from an expression rounds to the elements' dtype before it uses them",
    ),
    key(
        KeyName::Numbers,
        ValueKind::TextMap,
        "what a number has to do with elements: free, computed, held, alike, lower or upper",
    ),
    key(
        KeyName::ValueDepends,
        ValueKind::TextMap,
        "tensors whose elements decide a result's shape or dtype: required, optional or masks",
    ),
    key(KeyName::Types, ValueKind::Any, "dtypes an argument may have, where they differ from `dtypes`"),
    key(KeyName::Present, ValueKind::TextMap, "when a result of type `Tensor?` is there, a condition each"),
    key(KeyName::Length, ValueKind::Text, "how many tensors a list of results has, an expression"),
    key(KeyName::Infer, ValueKind::Text, "Rust function that says shape and dtype of every output"),
    key(KeyName::Shape, ValueKind::Any, "shape of each output: a named rule or an expression"),
    key(
        KeyName::RunSizes,
        ValueKind::TextMap,
        "sizes of outputs that only a run tells, by name, each with what it is at most",
    ),
    key(KeyName::RunShape, ValueKind::Any, "shape of each output in terms of `run_sizes`, before a run"),
    key(KeyName::Dtype, ValueKind::Any, "dtype of each output: a named rule or an expression"),
    key(KeyName::Compute, ValueKind::Text, "dtype the kernel computes in: a named rule or an expression"),
    key(KeyName::Dtypes, ValueKind::Any, "dtypes the kernels support, for all backends or each"),
    key(
        KeyName::Combinations,
        ValueKind::Any,
        "dtypes of arguments and results that go together, a row each",
    ),
    key(KeyName::Pointwise, ValueKind::Text, "one element of the output as an expression of the inputs"),
    key(
        KeyName::Dispatch,
        ValueKind::TextMap,
        "hand-written kernel of each backend: `linalg::mm`, or `fill::eye(n)` with the arguments it takes",
    ),
    key(KeyName::Decompose, ValueKind::Text, "the operator as an expression of other operators"),
    key(KeyName::Flops, ValueKind::Text, "arithmetic operations of a call of its kernel, an expression"),
    key(
        KeyName::Supplied,
        ValueKind::Any,
        "kernels that another project supplies, by form and its name of the backend",
    ),
    key(
        KeyName::Operator,
        ValueKind::TextList,
        "Rust operators that call it, such as `+`; `reversed -` swaps the operands",
    ),
    key(KeyName::Role, ValueKind::Text, "part the operator plays for the runtime"),
    key(KeyName::Derivatives, ValueKind::Any, "gradient formula of each input"),
    key(
        KeyName::NoBuffer,
        ValueKind::TextList,
        "inputs whose elements no gradient needs, only shape and dtype",
    ),
    key(
        KeyName::Intermediate,
        ValueKind::TextList,
        "results that gradients need and users do not get; they stand last",
    ),
    key(
        KeyName::Forward,
        ValueKind::Any,
        "how tangents flow: auto_linear, auto_element_wise, or a formula of each output",
    ),
    key(
        KeyName::OutputDifferentiability,
        ValueKind::TextList,
        "whether each output has a gradient: true, false, or constant if no input changes it",
    ),
    key(KeyName::Deterministic, ValueKind::Flag, "whether equal inputs always give equal bits"),
    key(
        KeyName::Updates,
        ValueKind::Flag,
        "whether kernels change a result that starts as a copy of the first argument, which they do not take",
    ),
    key(KeyName::Tolerance, ValueKind::Any, "error allowed in tests, for all dtypes or each"),
    key(KeyName::Samples, ValueKind::Any, "argument values for tests and docs"),
    key(KeyName::Origin, ValueKind::Any, "what an importer found and nothing here acts on, kept for tools"),
];

/// The keys of an entry of `declarations:`.
pub const DECLARATION_KEYS: &[KeySpec] = &[
    key(KeyName::Func, ValueKind::Text, "signature in PyTorch's schema language"),
    key(KeyName::Doc, ValueKind::Text, "what the function computes"),
    key(
        KeyName::Operator,
        ValueKind::TextList,
        "Rust operators that call it, such as `+`; `reversed -` swaps the operands",
    ),
];

/// The keys of an entry of `functions:`, in the order of `opsmith fmt`.
pub const FUNCTION_KEYS: &[KeySpec] = &[
    key(KeyName::Func, ValueKind::Text, "name and parameters, such as `exp(x)`"),
    key(KeyName::Doc, ValueKind::Text, "what the function computes"),
    key(KeyName::Rust, ValueKind::Text, "Rust expression of one element"),
    key(KeyName::Cuda, ValueKind::Text, "CUDA expression of one element"),
    key(KeyName::Dtypes, ValueKind::TextList, "dtypes it is defined for"),
    key(KeyName::Op, ValueKind::Text, "operator that computes it of tensors, if not the one of its name"),
    key(KeyName::Derivative, ValueKind::TextMap, "derivative by each parameter"),
    key(
        KeyName::Wirtinger,
        ValueKind::TextListMap,
        "derivatives by each complex parameter and by its conjugate, if it is not holomorphic",
    ),
];

/// The words of `types` besides dtypes: any dtype, that of the real part, and that in which kernels compute.
pub const ELEMENT_WORDS: [&str; 3] = ["any", "real", "opmath"];

/// Names of keys in other systems, for "did you mean".
pub const SYNONYMS: &[(&str, &str)] = &[
    ("operators", "ops"),
    ("operations", "ops"),
    ("version", "edition"),
    ("includes", "include"),
    ("signature", "func"),
    ("schema", "func"),
    ("name", "func"),
    ("description", "doc"),
    ("docs", "doc"),
    ("gradient", "derivatives"),
    ("gradients", "derivatives"),
    ("backward", "derivatives"),
    ("kernel", "dispatch"),
    ("kernels", "dispatch"),
    ("structured_delegate", "variants"),
    ("ufunc_inner_loop", "pointwise"),
    ("decomposition", "decompose"),
    ("equation", "formula"),
    ("alias", "alias_of"),
    ("aliases", "alias_of"),
];

/// The known key with the meaning of a word.
pub fn synonym(word: &str, known: &[&str]) -> Option<&'static str> {
    let found = SYNONYMS.iter().find(|(other, meant)| *other == word && known.contains(meant));
    found.map(|(_, meant)| *meant)
}

/// The row of a key.
pub fn find(table: &'static [KeySpec], name: &str) -> Option<&'static KeySpec> {
    table.iter().find(|row| row.name == name)
}

/// The truth value of a flag's text.
pub fn flag_value(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_distinct_and_documented() {
        for table in [FILE_KEYS, OP_KEYS, DECLARATION_KEYS, FUNCTION_KEYS] {
            for (index, row) in table.iter().enumerate() {
                assert!(table[..index].iter().all(|other| other.name != row.name), "`{}` twice", row.name);
                assert!(!row.doc.is_empty() && !row.doc.ends_with('.'), "doc of `{}`", row.name);
            }
        }
        let tables = [FILE_KEYS, OP_KEYS, DECLARATION_KEYS, FUNCTION_KEYS].concat();
        for key in KeyName::ALL {
            assert!(tables.iter().any(|row| row.key == *key), "`{}` has no row", key.name());
        }
    }

    #[test]
    fn synonyms_are_not_keys_and_mean_keys() {
        let rows = || FILE_KEYS.iter().chain(OP_KEYS).chain(FUNCTION_KEYS);
        for (other, meant) in SYNONYMS {
            assert!(rows().all(|row| row.name != *other), "`{other}` is a key");
            assert!(rows().any(|row| row.name == *meant), "`{meant}` is no key");
        }
    }
}
