//! The keys of a spec: one row each, from which the checks, the docs and the JSON schema come.

use crate::diagnostics::catalogue::ShownKey;

/// What a key's value looks like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValueKind {
    /// Text, also over several lines.
    Text,
    /// `true` or `false`.
    Flag,
    /// A list of texts; one text stands for a list of one.
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

/// A key of an entry.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// The key.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: ValueKind,
    /// What it says, in one line.
    pub doc: &'static str,
}

impl KeySpec {
    /// The key in messages.
    pub fn shown(&self) -> ShownKey {
        let KeySpec { name, kind, doc } = *self;
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
const fn key(name: &'static str, kind: ValueKind, doc: &'static str) -> KeySpec {
    KeySpec { name, kind, doc }
}

/// The keys at the top of a file, in the order that `opsmith fmt` puts them.
pub const FILE_KEYS: &[KeySpec] = &[
    key("edition", ValueKind::Text, "version of the spec language; this generator reads edition 1"),
    key("include", ValueKind::TextList, "other spec files to read, relative to this one"),
    key(
        "argument_aliases",
        ValueKind::TextListMap,
        "other names for arguments in calls by name, for every operator that has such an argument",
    ),
    key(
        "namespaces",
        ValueKind::TextMap,
        "prefixes of names in other libraries, each with the prefix that such names have here",
    ),
    key(
        "unlike",
        ValueKind::TextMap,
        "names in other libraries that mean something else here, each with advice",
    ),
    key("functions", ValueKind::Entries, "scalar functions that pointwise expressions may call"),
    key("ops", ValueKind::Entries, "the operators"),
    key("declarations", ValueKind::Entries, "functions that formulas call and that another project supplies"),
];

/// The keys of an entry of `ops:`, in the order that `opsmith fmt` puts them.
pub const OP_KEYS: &[KeySpec] = &[
    key("func", ValueKind::Text, "signature in PyTorch's schema language"),
    key("ignored", ValueKind::TextList, "arguments that callers may give and that change nothing"),
    key("doc", ValueKind::Text, "what the operator computes; Markdown, first sentence first"),
    key("alias_of", ValueKind::Text, "operator this is another name of"),
    key("since", ValueKind::Text, "version that added the operator"),
    key("deprecated", ValueKind::TextMap, "`since` which version, and what to `use` instead"),
    key("tags", ValueKind::TextList, "words to find and group operators by"),
    key("backward_only", ValueKind::Flag, "whether only gradient formulas call it"),
    key("argument_aliases", ValueKind::TextListMap, "other names for arguments in calls by name"),
    key(
        "known_as",
        ValueKind::TextList,
        "names that other libraries have for the operator, without overload",
    ),
    key("variants", ValueKind::TextList, "forms to generate: functional, inplace, out"),
    key("inplace", ValueKind::TextMap, "which result the in-place form writes into which argument"),
    key("names", ValueKind::Any, "names of the outputs or of forms, if not the usual ones"),
    key("rust_name", ValueKind::Text, "name of the Rust function, if not the operator's"),
    key("method", ValueKind::Text, "argument that the operator is a method of, or `none`"),
    key("view", ValueKind::Flag, "whether the output shares the input's memory"),
    key(
        "attributes",
        ValueKind::Any,
        "values an attribute may have: min, max, above, below, one_of, multiple_of, enum, len, min_len",
    ),
    key("check", ValueKind::TextList, "conditions on the arguments, each one expression"),
    key(
        "contiguous",
        ValueKind::TextList,
        "inputs that kernels want row-major; they are copied if they are not",
    ),
    key(
        "rounded",
        ValueKind::TextList,
        "numbers that a loop made from an expression rounds to the elements' dtype before it uses them",
    ),
    key(
        "numbers",
        ValueKind::TextMap,
        "what a number has to do with elements: free, computed, held, alike, lower or upper",
    ),
    key(
        "value_depends",
        ValueKind::TextMap,
        "tensors whose elements decide a result's shape or dtype: required, optional or masks",
    ),
    key("types", ValueKind::Any, "dtypes an argument may have, where they differ from `dtypes`"),
    key("present", ValueKind::TextMap, "when a result of type `Tensor?` is there, a condition each"),
    key("length", ValueKind::Text, "how many tensors a list of results has, an expression"),
    key("infer", ValueKind::Text, "Rust function that says shape and dtype of every output"),
    key("shape", ValueKind::Any, "shape of each output: a named rule or an expression"),
    key(
        "run_sizes",
        ValueKind::TextMap,
        "sizes of outputs that only a run tells, by name, each with what it is at most",
    ),
    key("run_shape", ValueKind::Any, "shape of each output in terms of `run_sizes`, before a run"),
    key("dtype", ValueKind::Any, "dtype of each output: a named rule or an expression"),
    key("compute", ValueKind::Text, "dtype the kernel computes in: a named rule or an expression"),
    key("dtypes", ValueKind::Any, "dtypes the kernels support, for all backends or each"),
    key("combinations", ValueKind::Any, "dtypes of arguments and results that go together, a row each"),
    key("pointwise", ValueKind::Text, "one element of the output as an expression of the inputs"),
    key("dispatch", ValueKind::TextMap, "hand-written kernel of each backend"),
    key("decompose", ValueKind::Text, "the operator as an expression of other operators"),
    key(
        "supplied",
        ValueKind::Any,
        "kernels that another project supplies, by form and its name of the backend",
    ),
    key(
        "operator",
        ValueKind::TextList,
        "Rust operators that call it, such as `+`; `reversed -` swaps the operands",
    ),
    key("role", ValueKind::Text, "part the operator plays for the runtime"),
    key("derivatives", ValueKind::Any, "gradient formula of each input"),
    key("no_buffer", ValueKind::TextList, "inputs whose elements no gradient needs, only shape and dtype"),
    key(
        "intermediate",
        ValueKind::TextList,
        "results that gradients need and users do not get; they stand last",
    ),
    key(
        "forward",
        ValueKind::Any,
        "how tangents flow: auto_linear, auto_element_wise, or a formula of each output",
    ),
    key(
        "output_differentiability",
        ValueKind::TextList,
        "whether each output has a gradient: true, false, or constant if no input changes it",
    ),
    key("deterministic", ValueKind::Flag, "whether equal inputs always give equal bits"),
    key("tolerance", ValueKind::Any, "error allowed in tests, for all dtypes or each"),
    key("samples", ValueKind::Any, "argument values for tests and docs"),
    key("origin", ValueKind::Any, "what an importer found and nothing here acts on, kept for tools"),
];

/// The keys of an entry of `declarations:`.
pub const DECLARATION_KEYS: &[KeySpec] = &[
    key("func", ValueKind::Text, "signature in PyTorch's schema language"),
    key("doc", ValueKind::Text, "what the function computes"),
    key(
        "operator",
        ValueKind::TextList,
        "Rust operators that call it, such as `+`; `reversed -` swaps the operands",
    ),
];

/// The keys of an entry of `functions:`, in the order that `opsmith fmt` puts them.
pub const FUNCTION_KEYS: &[KeySpec] = &[
    key("func", ValueKind::Text, "name and parameters, such as `exp(x)`"),
    key("doc", ValueKind::Text, "what the function computes"),
    key("rust", ValueKind::Text, "Rust expression of one element"),
    key("cuda", ValueKind::Text, "CUDA expression of one element"),
    key("dtypes", ValueKind::TextList, "dtypes it is defined for"),
    key("op", ValueKind::Text, "operator that computes it of tensors, if not the one of its name"),
    key("derivative", ValueKind::TextMap, "derivative by each parameter"),
    key(
        "wirtinger",
        ValueKind::TextListMap,
        "derivatives by each complex parameter and by its conjugate, if it is not holomorphic",
    ),
];

/// What `types` says of a tensor besides dtypes: of whatever dtype it is given, and of the real part's.
pub const ELEMENT_WORDS: [&str; 2] = ["any", "real"];

/// What `attributes` says of an argument.
pub const CONSTRAINTS: [&str; 9] =
    ["min", "max", "above", "below", "one_of", "multiple_of", "enum", "len", "min_len"];

/// What other systems call a constraint, for "did you mean".
pub const CONSTRAINT_SYNONYMS: &[(&str, &str)] = &[
    ("minimum", "min"),
    ("at_least", "min"),
    ("ge", "min"),
    ("maximum", "max"),
    ("at_most", "max"),
    ("le", "max"),
    ("gt", "above"),
    ("exclusive_min", "above"),
    ("lt", "below"),
    ("exclusive_max", "below"),
    ("choices", "one_of"),
    ("in", "one_of"),
    ("values", "one_of"),
    ("length", "len"),
    ("size", "len"),
    ("names", "enum"),
    ("named", "enum"),
];

/// What other systems call a key, for "did you mean".
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
    ("alias", "alias_of"),
    ("aliases", "alias_of"),
];

/// The key among those known that has the meaning of a word.
pub fn synonym(word: &str, known: &[&str]) -> Option<&'static str> {
    let found = SYNONYMS.iter().find(|(other, meant)| *other == word && known.contains(meant));
    found.map(|(_, meant)| *meant)
}

/// The constraint that has the meaning of a word.
pub fn constraint_synonym(word: &str) -> Option<&'static str> {
    CONSTRAINT_SYNONYMS.iter().find(|(other, _)| *other == word).map(|(_, meant)| *meant)
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
